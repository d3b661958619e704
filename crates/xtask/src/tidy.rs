//! Habits that no compiler holds: every file says what it is, none grows without arguing its
//! case, nothing is left for later, and nothing names the place where it was written.

#[cfg(test)]
mod tests {
    use std::{
        path::{Path, PathBuf},
        process::Command,
    };

    use crate::run::root;

    /// Files of the checkout with this ending, as git knows them.
    fn files(ending: &str) -> Vec<PathBuf> {
        let output = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .expect("git lists the files");
        String::from_utf8(output.stdout)
            .expect("paths are UTF-8")
            .lines()
            .filter(|path| path.ends_with(ending))
            .map(PathBuf::from)
            .filter(|path| root().join(path).is_file())
            .collect()
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(root().join(path)).unwrap_or_default()
    }

    fn complain(wrong: &[String]) {
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_source_file_opens_with_what_it_is() {
        let wrong: Vec<_> = files(".rs")
            .into_iter()
            .filter(|path| !read(path).starts_with("//!"))
            .map(|path| format!("{}: no head comment", path.display()))
            .collect();
        complain(&wrong);
    }

    /// A longer file says why in its head comment, with the words "one file".
    #[test]
    fn long_files_argue_their_case() {
        let wrong: Vec<_> = files(".rs")
            .into_iter()
            .filter(|path| {
                let text = read(path);
                let head = text.lines().take_while(|line| line.starts_with("//!"));
                text.lines().count() > 600
                    && !head.into_iter().any(|line| line.contains("one file"))
            })
            .map(|path| format!("{}: over 600 lines", path.display()))
            .collect();
        complain(&wrong);
    }

    #[test]
    fn nothing_is_left_for_later() {
        let words = [
            "to".to_owned() + "do!",
            "unimple".to_owned() + "mented!",
            "FIX".to_owned() + "ME",
            "#[ig".to_owned() + "nore",
        ];
        let mut wrong = Vec::new();
        for path in files(".rs") {
            for (number, line) in read(&path).lines().enumerate() {
                if words.iter().any(|word| line.contains(word.as_str())) {
                    wrong.push(format!(
                        "{}:{}: {}",
                        path.display(),
                        number + 1,
                        line.trim()
                    ));
                }
            }
        }
        complain(&wrong);
    }

    /// Hidden entries of the data plane that switch a defence off, make it fail, or serve without
    /// TLS: for tests and the benchmark. Everything that is shipped is built without a word of them.
    #[test]
    fn the_product_does_not_name_what_is_for_tests() {
        let hidden = ["start_in_clear", "Defences", "defences", ".fault"];
        let mut wrong = Vec::new();
        for path in files(".rs") {
            let text = read(&path);
            let found = hidden.iter().find(|word| text.contains(**word));
            if let Some(word) = found
                && ["cli", "edge-api-server", "edge-client", "controller"]
                    .iter()
                    .any(|name| path.starts_with(format!("crates/{name}/src")))
            {
                wrong.push(format!("{}: names {word}", path.display()));
            }
        }
        complain(&wrong);
    }

    /// The nearest `clippy.toml` replaces the root's, so each copy repeats it before its own bans.
    #[test]
    fn clippy_settings_of_core_crates_repeat_the_roots() {
        let common = read(Path::new("clippy.toml"));
        let mut wrong = Vec::new();
        for path in files("clippy.toml")
            .into_iter()
            .filter(|path| path != Path::new("clippy.toml"))
        {
            let copy = read(&path);
            for line in common
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.starts_with(['[', ']']))
            {
                if !copy.contains(line.trim()) {
                    wrong.push(format!("{}: lacks {line:?}", path.display()));
                }
            }
        }
        complain(&wrong);
    }
}
