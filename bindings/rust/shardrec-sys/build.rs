//! Finds libshardrec, or builds it:
//! - SHARDREC_LIB_DIR: the folder that holds libshardrec.so;
//! - feature `vendored`: built by CMake from the sources in this crate;
//! - else what pkg-config knows, of this crate's minor version.
//!
//! Where there is none, documentation and checks still work: src/lib.rs fails when code is made of it, with what
//! is said here. Crates that depend on this one read DEP_SHARDREC_LIBDIR, _INCLUDE and _VERSION in their build scripts.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Found {
    libraries: PathBuf,
    headers: Option<PathBuf>,
}

fn main() {
    for variable in [
        "SHARDREC_LIB_DIR",
        "DOCS_RS",
        "PKG_CONFIG",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_SYSROOT_DIR",
        "PKG_CONFIG_ALLOW_CROSS",
    ] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(shardrec_missing)");
    let found = match env::var_os("SHARDREC_LIB_DIR") {
        _ if env::var_os("DOCS_RS").is_some() => Err("DOCS_RS is set: nothing was looked for".to_string()),
        Some(folder) => in_folder(Path::new(&folder)),
        None if env::var_os("CARGO_FEATURE_VENDORED").is_some() => vendored(),
        None => by_pkg_config(),
    };
    match found {
        Ok(found) => {
            let libraries = plain(found.libraries);
            println!("cargo:rustc-link-search=native={}", libraries.display());
            println!("cargo:rustc-link-lib=dylib=shardrec");
            println!("cargo:libdir={}", libraries.display());
            if let Some(headers) = found.headers {
                println!("cargo:include={}", plain(headers).display());
            }
            println!("cargo:version={}", env!("CARGO_PKG_VERSION"));
        }
        Err(why) => {
            println!("cargo:rustc-cfg=shardrec_missing");
            println!(
                "cargo:rustc-env=SHARDREC_MISSING={}",
                why.split_whitespace().collect::<Vec<_>>().join(" ")
            );
        }
    }
}

/// Without "..", of which a relocatable pkg-config file has some: it becomes a program's run path.
fn plain(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

fn in_folder(folder: &Path) -> Result<Found, String> {
    if !folder.join("libshardrec.so").exists() {
        return Err(format!("SHARDREC_LIB_DIR is {}, where there is no libshardrec.so", folder.display()));
    }
    let headers = folder.parent().map(|above| above.join("include"));
    Ok(Found {
        libraries: folder.to_path_buf(),
        headers: headers.filter(|headers| headers.join("shardrec/shardrec.h").exists()),
    })
}

fn by_pkg_config() -> Result<Found, String> {
    const HINT: &str =
        "Install it with its pkg-config file, set PKG_CONFIG_PATH to the folder of shardrec.pc or \
                        SHARDREC_LIB_DIR to that of libshardrec.so, or enable the feature vendored";
    let foreign = env::var("HOST") != env::var("TARGET");
    let allowed = ["PKG_CONFIG_ALLOW_CROSS", "PKG_CONFIG_SYSROOT_DIR", "PKG_CONFIG_LIBDIR"];
    if foreign && allowed.iter().all(|variable| env::var_os(variable).is_none()) {
        return Err(format!("pkg-config knows the libraries of another target. {HINT}"));
    }
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let ask = |arguments: &[&str]| -> Result<String, String> {
        let output = Command::new(&program)
            .args(arguments)
            .output()
            .map_err(|e| format!("{program} could not be run: {e}. {HINT}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
        }
        Err(format!("{program} says: {}. {HINT}", String::from_utf8_lossy(&output.stderr).trim()))
    };
    let (least, below) = versions();
    let wanted = [format!("shardrec >= {least}"), format!("shardrec < {below}")];
    ask(&["--exists", "--print-errors", &wanted[0], &wanted[1]])?;
    let libraries = PathBuf::from(ask(&["--variable=libdir", "shardrec"])?);
    let headers = PathBuf::from(ask(&["--variable=includedir", "shardrec"])?);
    Ok(Found { libraries, headers: Some(headers) })
}

/// A minor version keeps what programs of an earlier release of it were linked with: this crate's release or a later
/// one of its minor version.
fn versions() -> (&'static str, String) {
    let minor: u32 = env!("CARGO_PKG_VERSION_MINOR").parse().expect("Cargo writes numbers");
    (env!("CARGO_PKG_VERSION"), format!("{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), minor + 1))
}

/// Builds and installs into OUT_DIR; Cargo puts its folder on the loader's path of `cargo run` and `cargo test`.
fn vendored() -> Result<Found, String> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    // The crate's own copy, or the checkout that this crate is in.
    let places = [here.join("vendor"), here.join("../../..")];
    let Some(sources) = places.iter().find(|place| place.join("capi/shardrec.map").exists()) else {
        return Err(format!("the feature vendored needs the library's sources in {}", places[0].display()));
    };
    for part in ["CMakeLists.txt", "cmake", "impl", "capi", "pkgconfig"] {
        println!("cargo:rerun-if-changed={}", sources.join(part).display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let (build, prefix) = (out.join("build"), out.join("installed"));
    let program = env::var("CMAKE").unwrap_or_else(|_| "cmake".to_string());
    let cmake = |arguments: &[&std::ffi::OsStr]| -> Result<(), String> {
        let output = Command::new(&program).args(arguments).output();
        let output =
            output.map_err(|e| format!("{program} could not be run, which builds the library: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        // A script that fails shows what it has written; the end is what matters.
        eprintln!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        panic!("{program} {arguments:?} failed: what it says is above");
    };
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "1".to_string());
    let mut configure: Vec<std::ffi::OsString> =
        vec!["-S".into(), sources.into(), "-B".into(), (&build).into()];
    for setting in ["BUILD_TYPE=Release", "INSTALL_LIBDIR=lib"] {
        configure.push(format!("-DCMAKE_{setting}").into());
    }
    for part in ["TESTS", "TOOLS", "BENCH", "WERROR", "FUZZ"] {
        configure.push(format!("-DSHARDREC_{part}=OFF").into());
    }
    cmake(&configure.iter().map(|argument| argument.as_os_str()).collect::<Vec<_>>())?;
    cmake(&["--build".as_ref(), build.as_os_str(), "--parallel".as_ref(), jobs.as_ref()])?;
    cmake(&[
        "--install".as_ref(),
        build.as_os_str(),
        "--prefix".as_ref(),
        prefix.as_os_str(),
        "--strip".as_ref(),
    ])?;
    Ok(Found { libraries: prefix.join("lib"), headers: Some(prefix.join("include")) })
}
