//! The reference page tells the limits that hold.

use manifests::{watch::Settings, yaml::Limits};

#[test]
fn the_reference_page_tells_the_limits() {
    let page = include_str!("../../../docs/reference/manifests.md");
    let Settings {
        limits,
        still,
        still_open_end,
        unrest,
        gone_grace,
        poll,
        notifications: _,
    } = Settings::default();
    let Limits {
        file_bytes,
        documents,
        nodes,
        depth,
        copied_nodes,
        copied_bytes,
        object_bytes,
    } = limits;
    let thousands = |number: usize| {
        let digits = number.to_string();
        let groups: Vec<_> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .map(String::from_utf8_lossy)
            .collect();
        groups.join(",")
    };
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let mebibytes = |bytes: usize| format!("{} MiB", bytes as f64 / f64::from(1 << 20));
    for told in [
        format!("| bytes of a file | {} |", mebibytes(file_bytes)),
        format!("| documents in a file | {} |", thousands(documents)),
        format!("| values in a file | {} |", thousands(nodes)),
        format!("| bytes of an object | {} |", mebibytes(object_bytes)),
        format!("| nesting of values | {depth} |"),
        format!(
            "| values and bytes copied by aliases in a file | {} and {} |",
            thousands(copied_nodes),
            mebibytes(copied_bytes)
        ),
        format!(
            "for {} ms, or for {} ms",
            still.as_millis(),
            still_open_end.as_millis()
        ),
        format!("do not come to rest for {} s", unrest.as_secs()),
        format!("counts as deleted after {} s", gone_grace.as_secs()),
        format!("otherwise every {} s", poll.as_secs()),
    ] {
        assert!(page.contains(&told), "the page does not say: {told}");
    }
}
