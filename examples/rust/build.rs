//! The program finds the library where it was when the program was built.
fn main() {
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", std::env::var("DEP_SHARDREC_LIBDIR").unwrap());
}
