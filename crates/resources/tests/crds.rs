//! The CRDs in `deploy/crds` are what the code says, and keep every misspelt field.

#![expect(clippy::disallowed_methods, reason = "the CRDs are files")]

use std::{env, fs, path::PathBuf};

use resources::crds::crds;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")
}

#[test]
fn the_files_are_what_the_code_says() {
    let folder = folder();
    let rewrite = env::var_os("PORTCULLIS_REWRITE").is_some();
    let mut wrong = Vec::new();
    for (name, text) in crds() {
        let path = folder.join(&name);
        if rewrite {
            fs::create_dir_all(&folder).expect("the folder can be made");
            fs::write(&path, &text).expect("the file can be written");
        }
        if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            wrong.push(name);
        }
    }
    let known: Vec<String> = crds().into_iter().map(|(name, _)| name).collect();
    for entry in fs::read_dir(&folder).expect("deploy/crds is there") {
        let name = entry
            .expect("the folder can be read")
            .file_name()
            .to_string_lossy()
            .into_owned();
        if !known.contains(&name) {
            wrong.push(name);
        }
    }
    assert!(
        wrong.is_empty(),
        "these files in deploy/crds differ from the code: {wrong:?}\n\
         rewrite them with: PORTCULLIS_REWRITE=1 cargo test -p resources --test crds"
    );
}
