use super::*;

#[test]
fn one_path_has_one_spelling() {
    for (given, normal) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/", "/a/"),
        ("//a///b//", "/a/b/"),
        ("/a/./b/.", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/..", "/"),
        ("/a//../b", "/b"),
        ("/%61%2D%2e%5f%7E", "/a-._~"),
        ("/a/%2e%2E/b", "/b"),
        ("/%c3%a4", "/%C3%A4"),
        ("/a%20b", "/a%20b"),
        ("/a|b[1]", "/a%7Cb%5B1%5D"),
        ("/.well-known/x", "/.well-known/x"),
        ("/...", "/..."),
        ("/a%40b", "/a%40b"),
        ("/a;b=c", "/a;b=c"),
    ] {
        assert_eq!(normalise(given).as_deref(), Ok(normal), "{given}");
    }
    assert!(matches!(
        normalise("/.well-known/a-b/c.txt"),
        Ok(Cow::Borrowed(_))
    ));
}
