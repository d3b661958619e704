//! From parser events to value trees.
//!
//! The builder keeps going after trouble inside a document, so that all of it is reported and
//! hosts can still be salvaged (R3); it never recurses, and every vector it fills is bounded by
//! [`Limits`].

use std::collections::BTreeMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag, options};
use resources::problem::{FieldPath, Problem, ProblemCode};

use super::{
    Document, Entry, Limits, Mark, Node, Unreadable, Value,
    keys::{self, MERGE},
    scalar::{self, NoJsonNumber},
};

/// More problems of one document than this say nothing new.
const PROBLEMS_MAX: usize = 50;

/// Reads a file's text into its documents. Documents without content (`---` and comments) are
/// left out.
///
/// # Errors
/// When the text as a whole cannot be read: its objects are pending (R19).
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Vec<Document>, Unreadable> {
    if bytes.len() > limits.file_bytes {
        let message = format!(
            "the file has {} bytes, more than the {} that are read",
            bytes.len(),
            limits.file_bytes
        );
        return Err(unreadable(
            Mark::START,
            "file-too-large",
            message,
            "split it into several files",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        unreadable(
            end_of(before),
            "not-utf-8",
            "the file is not UTF-8 text".to_owned(),
            "save it as UTF-8",
        )
    })?;
    let mut builder = Builder::new(limits);
    let parser_options = options! {
        // As kubectl's parser reads a last line without a line break.
        block_scalar_eof_without_line_feed: true,
        emit_unresolved_aliases: true,
    };
    for event in Parser::new_from_str_with_options(text, parser_options) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        builder.event(event, &span)?;
    }
    if builder.documents.is_empty() {
        return Err(unreadable(
            Mark::START,
            "file-empty",
            "the file holds no object: it is empty, half written, or all comment".to_owned(),
            "write the objects into it, or delete the file",
        ));
    }
    Ok(builder.documents)
}

fn unreadable(mark: Mark, code: &'static str, message: String, remedy: &'static str) -> Unreadable {
    Unreadable {
        mark,
        code,
        message,
        remedy,
    }
}

fn syntax(error: &ScanError) -> Unreadable {
    unreadable(
        mark(error.marker()),
        "file-syntax",
        format!("the file does not parse: {}", error.info()),
        "mend the syntax; until then its objects stay as they were last read",
    )
}

/// The place behind a text.
fn end_of(bytes: &[u8]) -> Mark {
    let line = bytes.iter().filter(|b| **b == b'\n').count();
    let last = bytes
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(bytes, |at| &bytes[at + 1..]);
    Mark {
        line: count(line + 1),
        column: count(String::from_utf8_lossy(last).chars().count() + 1),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn mark(marker: &Marker) -> Mark {
    Mark {
        line: count(marker.line()),
        column: count(marker.col() + 1),
    }
}

fn offset(marker: &Marker) -> u32 {
    count(marker.byte_offset().unwrap_or(0))
}

/// A collection that is not closed yet.
struct Frame {
    mark: Mark,
    offset: u32,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<Key>,
    },
}

/// A key that waits for its value.
struct Key {
    text: Box<str>,
    mark: Mark,
    merge: bool,
}

struct Builder<'a> {
    limits: &'a Limits,
    documents: Vec<Document>,
    frames: Vec<Frame>,
    /// How many collections are open below the depth that is kept.
    skipping: usize,
    root: Option<Node>,
    problems: Vec<Problem>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    copied_nodes: usize,
    copied_bytes: usize,
    expansion_reported: bool,
}

impl<'a> Builder<'a> {
    const fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            documents: Vec::new(),
            frames: Vec::new(),
            skipping: 0,
            root: None,
            problems: Vec::new(),
            anchors: BTreeMap::new(),
            nodes: 0,
            copied_nodes: 0,
            copied_bytes: 0,
            expansion_reported: false,
        }
    }

    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), Unreadable> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::Anchor(..) => {}
            Event::DocumentStart(..) => self.start_document(span)?,
            Event::DocumentEnd => self.end_document(),
            Event::Alias(id) => self.alias(id, span)?,
            Event::UnresolvedAlias(name) => {
                let message =
                    format!("the alias *{name} names no anchor before it in this document");
                self.problem(
                    ProblemCode::BadValue,
                    message,
                    "write the anchor before the alias, in the same document",
                );
                self.put(Value::Null, 0, span)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                if self.awaits_key() {
                    self.key(&text, style, tag.as_deref(), span)?;
                    self.keep_anchor_of_key(anchor, &text, span);
                } else {
                    let value = self.scalar(&text, style, tag.as_deref());
                    self.put(value, anchor, span)?;
                }
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.open(
                    Content::List(Vec::new()),
                    anchor,
                    tag.as_deref(),
                    "seq",
                    span,
                )?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.open(
                    Content::Map {
                        entries: Vec::new(),
                        key: None,
                    },
                    anchor,
                    tag.as_deref(),
                    "map",
                    span,
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            // The parser may learn new events; what this code does not know it does not skip.
            _ => {
                let message = "the file holds something that this program does not know".to_owned();
                return Err(unreadable(
                    mark(&span.start),
                    "file-syntax",
                    message,
                    "write it in plain YAML",
                ));
            }
        }
        Ok(())
    }

    fn start_document(&mut self, span: &Span) -> Result<(), Unreadable> {
        self.root = None;
        self.problems = Vec::new();
        self.anchors.clear();
        self.expansion_reported = false;
        if self.documents.len() < self.limits.documents {
            return Ok(());
        }
        let message = format!("the file has more than {} documents", self.limits.documents);
        Err(unreadable(
            mark(&span.start),
            "file-too-many-documents",
            message,
            "split it into several files",
        ))
    }

    fn end_document(&mut self) {
        let problems = std::mem::take(&mut self.problems);
        let Some(root) = self.root.take() else { return };
        if root.value != Value::Null || !problems.is_empty() {
            self.documents.push(Document { root, problems });
        }
    }

    fn awaits_key(&self) -> bool {
        self.skipping == 0
            && matches!(
                self.frames.last(),
                Some(Frame {
                    content: Content::Map { key: None, .. },
                    ..
                })
            )
    }

    fn count_node(&mut self, at: &Marker) -> Result<(), Unreadable> {
        self.nodes += 1;
        if self.nodes <= self.limits.nodes {
            return Ok(());
        }
        let message = format!("the file has more than {} values", self.limits.nodes);
        Err(unreadable(
            mark(at),
            "file-too-many-values",
            message,
            "split it into several files",
        ))
    }

    /// The path of the value that is being read.
    fn path(&self) -> FieldPath {
        self.frames
            .iter()
            .fold(FieldPath::root(), |path, frame| match &frame.content {
                Content::List(items) => path.item(items.len()),
                Content::Map { key: Some(key), .. } => path.member(&key.text),
                Content::Map { key: None, .. } => path,
            })
    }

    fn settle(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut found = Vec::new();
        let entries = keys::settle(entries, || self.path(), &mut found);
        let room = PROBLEMS_MAX.saturating_sub(self.problems.len());
        self.problems.extend(found.into_iter().take(room));
        entries
    }

    fn problem(&mut self, code: ProblemCode, message: impl Into<String>, remedy: &str) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems
                .push(Problem::new(self.path(), code, message, remedy));
        }
    }

    fn key(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), Unreadable> {
        self.count_node(&span.start)?;
        let value = self.scalar(text, style, tag);
        let merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none();
        if let Some(Frame {
            content: Content::Map { key, .. },
            ..
        }) = self.frames.last_mut()
        {
            *key = Some(Key {
                text: text.into(),
                mark: mark(&span.start),
                merge,
            });
        }
        if !matches!(value, Value::Text(_)) {
            self.problem(
                ProblemCode::WrongType,
                format!("the key {text:?} is not a text"),
                "put it in quotes (without them yes, no, on, off and numbers are no texts)",
            );
        }
        Ok(())
    }

    fn keep_anchor_of_key(&mut self, anchor: usize, text: &str, span: &Span) {
        if anchor != 0 {
            let node = node(Value::Text(text.into()), span);
            self.keep_anchor(anchor, &node);
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
        let plain = match style {
            ScalarStyle::Plain => true,
            ScalarStyle::SingleQuoted
            | ScalarStyle::DoubleQuoted
            | ScalarStyle::Literal
            | ScalarStyle::Folded => false,
        };
        let kind = tag.map(core_tag);
        let value = match kind {
            None if plain => scalar::plain(text),
            None | Some(Some("str")) => return Value::Text(text.into()),
            Some(Some("null" | "bool" | "int" | "float")) => scalar::plain(text),
            Some(_) => {
                self.unknown_tag(tag);
                return Value::Text(text.into());
            }
        };
        let Ok(value) = value else {
            let NoJsonNumber = NoJsonNumber;
            self.problem(
                ProblemCode::OutOfRange,
                format!("the number {text} is out of range"),
                "",
            );
            return Value::Null;
        };
        let fits = match (kind.flatten(), &value) {
            (Some("null"), Value::Null) | (Some("bool"), Value::Bool(_)) | (None, _) => true,
            (Some("int"), Value::Number(number)) => !number.is_f64(),
            (Some("float"), Value::Number(_)) => true,
            (Some(_), _) => false,
        };
        if !fits {
            self.problem(
                ProblemCode::WrongType,
                format!("{text:?} is not what its tag says"),
                "remove the tag",
            );
        }
        value
    }

    fn unknown_tag(&mut self, tag: Option<&Tag>) {
        let name = tag.map(ToString::to_string).unwrap_or_default();
        self.problem(
            ProblemCode::BadValue,
            format!("the tag {name} has no meaning in a manifest"),
            "remove the tag",
        );
    }

    fn open(
        &mut self,
        content: Content,
        anchor: usize,
        tag: Option<&Tag>,
        kind: &str,
        span: &Span,
    ) -> Result<(), Unreadable> {
        self.count_node(&span.start)?;
        if self.skipping > 0 {
            self.skipping += 1;
            return Ok(());
        }
        if self.awaits_key() {
            self.problem(
                ProblemCode::WrongType,
                "a key is a list or a mapping",
                "keys are texts",
            );
            self.skipping = 1;
            return Ok(());
        }
        if tag.is_some_and(|tag| core_tag(tag) != Some(kind)) {
            self.unknown_tag(tag);
        }
        if self.frames.len() >= self.limits.depth {
            let message = format!("values nest deeper than {} levels", self.limits.depth);
            self.problem(
                ProblemCode::TooLarge,
                message,
                "no manifest needs that; look for a mistake in the indentation",
            );
            self.skipping = 1;
            return Ok(());
        }
        self.frames.push(Frame {
            mark: mark(&span.start),
            offset: offset(&span.start),
            anchor,
            content,
        });
        Ok(())
    }

    fn close(&mut self, span: &Span) -> Result<(), Unreadable> {
        if self.skipping > 0 {
            self.skipping -= 1;
            if self.skipping == 0 {
                self.close_skipped(span)?;
            }
            return Ok(());
        }
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let value = match frame.content {
            Content::List(items) => Value::List(items),
            Content::Map { entries, key: _ } => Value::Map(self.settle(entries)),
        };
        let size = offset(&span.end).saturating_sub(frame.offset);
        let node = Node {
            mark: frame.mark,
            offset: frame.offset,
            size,
            value,
        };
        self.attach(node, frame.anchor);
        Ok(())
    }

    /// What was skipped stood for a key or for a value.
    fn close_skipped(&mut self, span: &Span) -> Result<(), Unreadable> {
        if let Some(Frame {
            content: Content::Map {
                key: key @ None, ..
            },
            ..
        }) = self.frames.last_mut()
        {
            *key = Some(Key {
                text: "?".into(),
                mark: mark(&span.start),
                merge: false,
            });
            return Ok(());
        }
        self.put(Value::Null, 0, span)
    }

    fn put(&mut self, value: Value, anchor: usize, span: &Span) -> Result<(), Unreadable> {
        self.count_node(&span.start)?;
        if self.skipping == 0 {
            self.attach(node(value, span), anchor);
        }
        Ok(())
    }

    fn attach(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            self.keep_anchor(anchor, &node);
        }
        match self.frames.last_mut() {
            None => self.root = Some(node),
            Some(Frame {
                content: Content::List(items),
                ..
            }) => items.push(node),
            Some(Frame {
                content: Content::Map { entries, key },
                ..
            }) => match key.take() {
                Some(key) if key.merge => {
                    // Kept under its own name until the mapping ends: explicit keys win over it.
                    entries.push(Entry {
                        key: "<<".into(),
                        mark: MERGE,
                        node,
                    });
                }
                Some(key) => entries.push(Entry {
                    key: key.text,
                    mark: key.mark,
                    node,
                }),
                None => {}
            },
        }
    }

    /// Copies are paid for when they are kept and when they are used, so that neither many
    /// anchors around one large value nor many aliases of it can grow beyond the limits.
    fn pay(&mut self, node: &Node) -> bool {
        let (nodes, bytes) = node.weight();
        let fits = self.copied_nodes.saturating_add(nodes) <= self.limits.copied_nodes
            && self.copied_bytes.saturating_add(bytes) <= self.limits.copied_bytes;
        if fits {
            self.copied_nodes += nodes;
            self.copied_bytes += bytes;
        }
        fits
    }

    fn keep_anchor(&mut self, anchor: usize, node: &Node) {
        if self.pay(node) {
            self.anchors.insert(anchor, node.clone());
        }
    }

    fn alias(&mut self, id: usize, span: &Span) -> Result<(), Unreadable> {
        let copy = self.anchors.get(&id).cloned();
        let copy = copy.filter(|node| self.pay(node));
        if self.skipping == 0 && copy.is_none() && !self.expansion_reported {
            self.expansion_reported = true;
            self.problem(
                ProblemCode::TooLarge,
                "the aliases of this file expand to too much, or one stands within its own anchor",
                "write the values out",
            );
        }
        let value = copy.map_or(Value::Null, |node| node.value);
        if self.awaits_key() {
            let text = match &value {
                Value::Text(text) => text.to_string(),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::List(_)
                | Value::Map(_) => {
                    self.problem(
                        ProblemCode::WrongType,
                        "a key is an alias of something that is no text",
                        "write the key out",
                    );
                    "?".to_owned()
                }
            };
            return self.key(&text, ScalarStyle::DoubleQuoted, None, span);
        }
        self.put(value, 0, span)
    }
}

fn node(value: Value, span: &Span) -> Node {
    let start = offset(&span.start);
    Node {
        mark: mark(&span.start),
        offset: start,
        size: offset(&span.end).saturating_sub(start),
        value,
    }
}

/// The name of a tag of the YAML core schema.
fn core_tag(tag: &Tag) -> Option<&str> {
    tag.core_suffix()
}
