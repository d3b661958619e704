//! From the text of one file to objects, each with the place of each of its fields.
//!
//! Three outcomes for a document: an object (decoded, or undecodable with all that is wrong with
//! it), a finding (somebody's mistake that nobody can refer to), or a [`Part`] that may have
//! declared hosts and cannot be read: then its hosts are looked for leniently (R3).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use resources::{
    decode::{Source, decode},
    kinds::{Class, Kind, classify, meant},
    position::{LineColumn, Origin, Place, Positions},
    problem::{FieldPath, Problem, ProblemCode},
    snapshot::{AnyObject, Finding, ObjectKey},
};

use crate::{
    scan::{Scan, scan},
    yaml::{self, Document, Limits, Mark, Node, Unreadable, Value},
};

/// What one file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    pub(crate) objects: Vec<AnyObject>,
    /// Objects that declare routes and have no name: undecodable, under a name made up for them.
    pub(crate) unnamed: Vec<AnyObject>,
    pub(crate) findings: Vec<Finding>,
    /// Documents that may declare hosts and cannot be read; one for the whole file if it does
    /// not parse.
    pub(crate) parts: Vec<Part>,
    /// Whether the file as a whole could be read.
    pub(crate) readable: bool,
    /// Whether some document is no object: it may be what is left of one.
    pub(crate) has_remains: bool,
}

/// Text that may have declared anything.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) problem: Problem,
    pub(crate) scan: Scan,
}

impl Contents {
    /// Whether nothing in it is of a kind that is used here, and nothing is wrong with it.
    pub(crate) const fn is_empty(&self) -> bool {
        let Self {
            objects,
            unnamed,
            findings,
            parts,
            readable: _,
            has_remains: _,
        } = self;
        objects.is_empty() && unnamed.is_empty() && findings.is_empty() && parts.is_empty()
    }

    /// A file that could not be read for a reason that lies outside its text.
    pub(crate) fn unreadable(file: &Arc<str>, message: String, remedy: &str, scan: Scan) -> Self {
        let problem = Problem::new(FieldPath::root(), ProblemCode::Unreadable, message, remedy);
        let place = Place {
            file: Arc::clone(file),
            at: place(Mark::START),
        };
        Self {
            parts: vec![Part {
                place,
                problem,
                scan,
            }],
            ..Self::default()
        }
    }

    /// The names of all objects that have one.
    pub(crate) fn names(&self) -> BTreeSet<(Kind, ObjectKey)> {
        self.objects
            .iter()
            .map(|object| (object.kind(), object.key().clone()))
            .collect()
    }
}

/// Reads a file's text. Its objects are as old as `age` says, in the order of the text.
pub(crate) fn read(file: &Arc<str>, bytes: &[u8], age: u64, limits: &Limits) -> Contents {
    // The parser is not ours: if it fails on a text, that costs this file and nothing else (R15).
    let parsed = std::panic::catch_unwind(|| yaml::parse(bytes, limits));
    let documents = match parsed {
        Ok(Ok(documents)) => documents,
        Ok(Err(error)) => return broken(file, bytes, error),
        Err(_) => {
            let message = "the file makes the YAML parser fail".to_owned();
            let remedy = "write it more simply, and please report it";
            return Contents::unreadable(file, message, remedy, scan(bytes));
        }
    };
    let mut reader = Reader {
        file,
        bytes,
        age,
        limits,
        contents: Contents {
            readable: true,
            ..Contents::default()
        },
    };
    for document in documents {
        let Document { root, problems } = document;
        reader.document(&root, problems, None);
    }
    reader.contents
}

fn broken(file: &Arc<str>, bytes: &[u8], error: Unreadable) -> Contents {
    let Unreadable {
        mark,
        code: _,
        message,
        remedy,
    } = error;
    let problem = Problem::new(FieldPath::root(), ProblemCode::Unreadable, message, remedy);
    let place = Place {
        file: Arc::clone(file),
        at: place(mark),
    };
    Contents {
        parts: vec![Part {
            place,
            problem,
            scan: scan(bytes),
        }],
        ..Contents::default()
    }
}

const fn place(mark: Mark) -> LineColumn {
    let Mark { line, column } = mark;
    LineColumn { line, column }
}

struct Reader<'a> {
    file: &'a Arc<str>,
    bytes: &'a [u8],
    age: u64,
    limits: &'a Limits,
    contents: Contents,
}

impl Reader<'_> {
    /// One document, or one item of a list, which may have its kind from the list.
    fn document(&mut self, node: &Node, problems: Vec<Problem>, typed: Option<(&str, &str)>) {
        let text = |key| {
            node.get(key)
                .and_then(Node::text)
                .filter(|text| !text.is_empty())
        };
        let written = |key| node.get(key).is_some_and(|node| node.value != Value::Null);
        let api_version = text("apiVersion").or(typed.map(|(version, _)| version));
        let kind = text("kind").or(typed.map(|(_, kind)| kind));
        let (Some(api_version), Some(kind)) = (api_version, kind) else {
            let problem = no_kind(node, problems);
            if let Some(kind) = declaring_by_looks(node, api_version, kind) {
                self.contents.has_remains = true;
                return self.object(kind, node, vec![problem]);
            }
            return if written("kind") {
                self.part(node, problem)
            } else {
                self.remains(node, "", problem)
            };
        };
        match classify(api_version, kind) {
            Ok(Class::Read(kind)) => self.object(kind, node, problems),
            Ok(Class::List) => self.list(node, problems, api_version, kind),
            Ok(Class::Ignored) if misversioned_list(api_version, kind) => {
                self.list(node, problems, api_version, kind)
            }
            Ok(Class::Ignored) => {
                // Somebody else's object, if it is certain whose.
                for problem in problems
                    .into_iter()
                    .filter(|p| matches!(p.path.as_str(), "" | "kind" | "apiVersion"))
                {
                    self.finding(node, kind, problem);
                }
            }
            Err(problem) => match meant(kind) {
                // It is meant for us and cannot be read: its hosts are staged closed (R3).
                Some(Class::Read(known))
                    if known.is_declaring() || known.name().eq_ignore_ascii_case(kind) =>
                {
                    let problems = std::iter::once(problem).chain(problems).collect();
                    self.object(known, node, problems);
                }
                Some(Class::List) => {
                    self.finding(node, kind, problem);
                    self.list(node, problems, "v1", "List");
                }
                Some(Class::Read(_) | Class::Ignored) | None => self.finding(node, kind, problem),
            },
        }
    }

    fn list(&mut self, node: &Node, problems: Vec<Problem>, api_version: &str, kind: &str) {
        let mut of_items: BTreeMap<usize, Vec<Problem>> = BTreeMap::new();
        for problem in problems {
            match item_of(&problem.path) {
                Some((index, path)) => of_items
                    .entry(index)
                    .or_default()
                    .push(Problem { path, ..problem }),
                None => self.finding(node, kind, problem),
            }
        }
        let Some(Node {
            value: Value::List(items),
            ..
        }) = node.get("items")
        else {
            let path = FieldPath::root().member("items");
            let problem = Problem::new(
                path,
                ProblemCode::WrongType,
                "a List without a list of items",
                "write items",
            );
            return self.part(node, problem);
        };
        // The items of a typed list (`kind: IngressList`) have their kind from it.
        let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
        let typed = item_kind.map(|kind| (api_version, kind));
        for (index, item) in items.iter().enumerate() {
            self.document(item, of_items.remove(&index).unwrap_or_default(), typed);
        }
    }

    fn object(&mut self, kind: Kind, node: &Node, mut problems: Vec<Problem>) {
        if node.size as usize > self.limits.object_bytes {
            problems.push(Problem::new(
                FieldPath::root(),
                ProblemCode::TooLarge,
                format!(
                    "the object has {} bytes, more than the {} that are read",
                    node.size, self.limits.object_bytes
                ),
                "no API server would take it; split it",
            ));
        }
        problems.sort();
        let source = self.source(node, problems);
        self.age += 1;
        match decode(kind, with_kind(node, kind), source) {
            Ok(object) => self.contents.objects.push(object),
            Err(finding) => {
                self.unnamed(kind, node, name_is_no_text(node).unwrap_or(finding.problem))
            }
        }
    }

    /// An object that nobody can refer to. If it declares routes they are staged closed all the
    /// same (R3), under a name that tells where it stands.
    fn unnamed(&mut self, kind: Kind, node: &Node, problem: Problem) {
        if !kind.is_declaring() {
            return self.remains(node, kind.name(), problem);
        }
        self.contents.has_remains = true;
        let mut document = with_kind(node, kind);
        let name = format!("unnamed-{}-{}", self.age >> 32, node.mark.line);
        match document
            .get_mut("metadata")
            .and_then(|metadata| metadata.as_object_mut())
        {
            Some(metadata) => metadata.insert("name".to_owned(), name.into()),
            None => document.as_object_mut().and_then(|object| {
                object.insert("metadata".to_owned(), serde_json::json!({ "name": name }))
            }),
        };
        match decode(kind, document, self.source(node, vec![problem.clone()])) {
            Ok(object) => self.contents.unnamed.push(object),
            // Its namespace is none either.
            Err(_) => self.part(node, problem),
        }
    }

    fn source(&self, node: &Node, problems: Vec<Problem>) -> Source {
        Source {
            default_namespace: "default".to_owned(),
            origin: Origin::File {
                file: Arc::clone(self.file),
                positions: positions(node),
            },
            age: self.age,
            problems,
        }
    }

    /// A document that is no object.
    fn remains(&mut self, node: &Node, kind: &str, problem: Problem) {
        self.contents.has_remains = true;
        self.finding(node, kind, problem);
    }

    fn finding(&mut self, node: &Node, kind: &str, problem: Problem) {
        let metadata = |key| {
            node.get("metadata")
                .and_then(|m| m.get(key))
                .and_then(Node::text)
                .unwrap_or_default()
        };
        let place = self.place(node, &problem.path);
        let key = ObjectKey::new(metadata("namespace"), metadata("name"));
        self.contents.findings.push(Finding {
            place: Some(place),
            kind: kind.to_owned(),
            key,
            problem,
        });
    }

    /// A document that may declare hosts, and whose name or kind cannot be told.
    fn part(&mut self, node: &Node, problem: Problem) {
        self.contents.has_remains = true;
        let start = node.offset as usize;
        let text = self
            .bytes
            .get(start..start + node.size as usize)
            .unwrap_or(self.bytes);
        let (place, scan) = (self.place(node, &problem.path), scan(text));
        self.contents.parts.push(Part {
            place,
            problem,
            scan,
        });
    }

    fn place(&self, node: &Node, path: &FieldPath) -> Place {
        let at = positions(node)
            .find(path)
            .unwrap_or_else(|| place(node.mark));
        Place {
            file: Arc::clone(self.file),
            at,
        }
    }
}

fn no_kind(node: &Node, problems: Vec<Problem>) -> Problem {
    let remedy = "write apiVersion and kind, or take the file out of the directory";
    if let Some(problem) = problems.into_iter().next() {
        return problem;
    }
    match node.value {
        Value::Map(_) => {
            let is_text = |key| {
                node.get(key)
                    .and_then(Node::text)
                    .is_some_and(|text| !text.is_empty())
            };
            let key = if is_text("kind") {
                "apiVersion"
            } else {
                "kind"
            };
            let (code, message) = match node.get(key) {
                Some(_) => (ProblemCode::WrongType, format!("{key} is not a text")),
                None => (
                    ProblemCode::MissingField,
                    format!("the document has no {key}"),
                ),
            };
            if let (Some(Class::Read(known)), "apiVersion") =
                (node.get("kind").and_then(Node::text).and_then(meant), key)
            {
                let remedy = format!("write apiVersion: {}", known.api_version());
                return Problem::new(FieldPath::root().member(key), code, message, remedy);
            }
            Problem::new(FieldPath::root().member(key), code, message, remedy)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
            Problem::new(
                FieldPath::root(),
                ProblemCode::WrongType,
                "the document is not an object",
                remedy,
            )
        }
    }
}

/// The declaring kind that an object without `apiVersion` or `kind` most likely is: by the kind, or
/// by fields that nothing else has, or by the group. It may hide a path from its neighbour (R3).
fn declaring_by_looks(node: &Node, api_version: Option<&str>, kind: Option<&str>) -> Option<Kind> {
    let spec = node.get("spec")?;
    if let Some(Class::Read(kind)) = kind.and_then(meant) {
        return kind.is_declaring().then_some(kind);
    }
    let has = |field| spec.get(field).is_some();
    let has_rule = spec.get("rules").is_some_and(|rules| match &rules.value {
        Value::List(rules) => rules
            .iter()
            .any(|rule| rule.get("host").is_some() || rule.get("http").is_some()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Map(_) => false,
    });
    let group = api_version.map(|version| version.rsplit_once('/').map_or("", |(group, _)| group));
    let group_has = |kind: Kind| group == Some(kind.group());
    if has("hostports") {
        Some(if has("routes") {
            Kind::HttpsEdge
        } else {
            Kind::TlsEdge
        })
    } else if has("ingressClassName") || has("defaultBackend") || has_rule {
        Some(Kind::Ingress)
    } else if has("domain") {
        Some(Kind::Domain)
    } else if kind.is_some() {
        None
    } else if group_has(Kind::Ingress) && !has("controller") {
        Some(Kind::Ingress)
    } else {
        // What is none of the group's other kinds.
        let others = node.get("modules").is_some() || has("rules") || has("forwardsTo");
        (group_has(Kind::HttpsEdge) && !others).then_some(Kind::HttpsEdge)
    }
}

/// A name that is written and yet no text: `n` and `on` are booleans, `1` is a number.
fn name_is_no_text(node: &Node) -> Option<Problem> {
    let name = node.get("metadata")?.get("name")?;
    let path = FieldPath::root().member("metadata").member("name");
    let problem = Problem::new(
        path,
        ProblemCode::WrongType,
        "the name is not a text",
        "write one, in quotes",
    );
    name.text().is_none().then_some(problem)
}

/// Whether this is a list of objects that are meant for us under a version that is not read.
fn misversioned_list(api_version: &str, kind: &str) -> bool {
    kind.strip_suffix("List")
        .is_some_and(|kind| classify(api_version, kind).is_err())
}

/// The document with the kind that it was found to have; items of typed lists leave it out.
fn with_kind(node: &Node, kind: Kind) -> serde_json::Value {
    let mut document = node.to_json();
    if let Some(object) = document.as_object_mut() {
        object.insert("apiVersion".to_owned(), kind.api_version().into());
        object.insert("kind".to_owned(), kind.name().into());
    }
    document
}

/// `items[3].spec.x` is `spec.x` of item 3.
fn item_of(path: &FieldPath) -> Option<(usize, FieldPath)> {
    let (index, rest) = path.as_str().strip_prefix("items[")?.split_once(']')?;
    Some((
        index.parse().ok()?,
        FieldPath::from(rest.strip_prefix('.').unwrap_or(rest)),
    ))
}

/// Where every field stands: keys at their key, list items at their value.
fn positions(node: &Node) -> Positions {
    fn walk(node: &Node, path: &FieldPath, found: &mut Vec<(FieldPath, LineColumn)>) {
        match &node.value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = path.item(index);
                    walk(item, &path, found);
                    found.push((path, place(item.mark)));
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    let path = path.member(&entry.key);
                    walk(&entry.node, &path, found);
                    found.push((path, place(entry.mark)));
                }
            }
        }
    }
    let mut found = vec![(FieldPath::root(), place(node.mark))];
    walk(node, &FieldPath::root(), &mut found);
    found.into_iter().collect()
}

#[cfg(test)]
mod tests;
