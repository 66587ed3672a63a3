//! Finds libshardrec: in the folder SHARDREC_LIB_DIR, else through pkg-config. The folder must also be on
//! the loader's path when the program runs (LD_LIBRARY_PATH, or a system install).

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=SHARDREC_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=dylib=shardrec");
    if let Ok(folder) = std::env::var("SHARDREC_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let output = Command::new("pkg-config").args(["--libs-only-L", "shardrec"]).output();
    match output {
        Ok(output) if output.status.success() => {
            for flag in String::from_utf8_lossy(&output.stdout).split_whitespace() {
                println!("cargo:rustc-link-search=native={}", flag.trim_start_matches("-L"));
            }
        }
        _ => panic!("libshardrec was not found: set SHARDREC_LIB_DIR or install it with its pkg-config file"),
    }
}
