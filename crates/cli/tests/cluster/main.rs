//! The CRDs in `deploy/crds` on a real Kubernetes API server: it takes them without a word, keeps
//! what is misspelt for the controller to see (R15), and refuses what the schemas refuse.
//!
//! The objects that are tried are made from the schemas as the server itself hands them back, so
//! that every field of every kind is there.

#![expect(
    clippy::panic,
    reason = "a helper that finds something wrong fails its test"
)]

mod schemas;

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use manifests::yaml::{Limits, parse};
use resources::{
    decode::{Source, decode},
    kinds::Kind,
    position::Origin,
    problem::{Problem, ProblemCode},
    snapshot::AnyObject,
};
use schemas::{At, every, refused, sample};
use serde_json::{Map, Value, json};
use testkit::{client::Answer, cluster::Cluster, wait::until};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const LIMIT: Duration = Duration::from_secs(30);
/// Refuse what would be dropped: what `kubectl apply` asks for.
const STRICT: &str = "fieldValidation=Strict";

#[test]
fn the_crds_and_what_is_written_by_them() {
    let cluster = Cluster::start();
    let mut judge = Judge {
        cluster: &cluster,
        wrong: Vec::new(),
        made: 0,
    };
    let definitions = judge.definitions();
    judge.examples();
    for definition in &definitions {
        let tried = Tried::of(definition);
        judge.every_field_is_kept(&tried);
        judge.unknown_fields_are_kept(&tried);
        judge.nothing_is_noticed(&tried);
        judge.what_the_schema_refuses(&tried);
        judge.status_is_apart(&tried);
    }
    let version = cluster.send("GET", "/version", None).json();
    println!(
        "{} objects on Kubernetes {}",
        judge.made, version["gitVersion"]
    );
    let wrong = judge.wrong;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A kind as the server knows it.
struct Tried<'a> {
    kind: Kind,
    definition: &'a Value,
    /// Of what users write: neither status, which only a controller writes, nor what every
    /// Kubernetes object has.
    schema: Value,
}

impl<'a> Tried<'a> {
    fn of(definition: &'a Value) -> Self {
        let name = definition["spec"]["names"]["kind"].as_str();
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| Some(kind.name()) == name)
            .expect("one of our kinds");
        let mut schema = version(definition)["schema"]["openAPIV3Schema"].clone();
        let properties = schema["properties"].as_object_mut().expect("properties");
        for name in ["apiVersion", "kind", "metadata", "status"] {
            properties.remove(name);
        }
        Self {
            kind,
            definition,
            schema,
        }
    }

    /// A value with something else at one place.
    fn with(&self, at: &At, value: Value) -> Value {
        let mut content = sample(&self.schema);
        *content.pointer_mut(&at.pointer).expect("it is there") = value;
        content
    }
}

fn version(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]
}

/// Tries things and collects what is wrong.
struct Judge<'a> {
    cluster: &'a Cluster,
    wrong: Vec<String>,
    made: usize,
}

impl Judge<'_> {
    fn demand(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(what());
        }
    }

    /// Every CRD is applied, twice; the answers are what the server made of them.
    fn definitions(&mut self) -> Vec<Value> {
        let mut definitions = Vec::new();
        let folder = Path::new(ROOT).join("deploy/crds");
        for entry in fs::read_dir(folder).expect("deploy/crds is there") {
            let text = fs::read(entry.expect("an entry").path()).expect("it can be read");
            let written = documents(&text).remove(0);
            let name = written["metadata"]["name"].as_str().expect("a name");
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let mut versions = BTreeSet::new();
            for _ in 0..2 {
                let applied = self.apply(&path, &text);
                versions.insert(applied["metadata"]["generation"].to_string());
            }
            self.demand(versions.len() == 1, || {
                format!("{name}: applied again, it changes")
            });
            let definition = until("it is established", LIMIT, || {
                let now = self.cluster.send("GET", &path, None).json();
                if condition(&now, "Established") == Some("True") {
                    Ok(now)
                } else {
                    Err(now)
                }
            });
            self.demand(
                condition(&definition, "NamesAccepted") == Some("True"),
                || format!("{name}: names are taken"),
            );
            self.demand(
                condition(&definition, "NonStructuralSchema").is_none(),
                || format!("{name}: the schema is not structural"),
            );
            self.demand(version(&definition) == version(&written), || {
                format!("{name}: the server changed it")
            });
            definitions.push(definition);
        }
        assert_eq!(
            definitions.len(),
            Kind::ALL.iter().filter(|kind| kind.is_custom()).count()
        );
        definitions
    }

    /// Server-side apply, as `kubectl apply --server-side` does it.
    fn apply(&mut self, path: &str, text: &[u8]) -> Value {
        let path = format!("{path}?fieldManager=test&{STRICT}");
        let media_type = "application/apply-patch+yaml";
        let answer = self.cluster.send("PATCH", &path, Some((media_type, text)));
        self.made += 1;
        self.demand(matches!(answer.status, 200 | 201), || {
            format!("{path}: {}", answer.text())
        });
        self.demand(answer.header("warning").is_none(), || {
            format!("{path}: {answer:?}")
        });
        answer.json()
    }

    /// What the examples say is taken, and what the server makes of it is understood.
    fn examples(&mut self) {
        let texts = ["game-2048/manifest.yml", "quickstart/quickstart.yaml"]
            .map(|name| fs::read(Path::new(ROOT).join("examples").join(name)).expect("an example"));
        for document in texts.iter().flat_map(|text| documents(text)) {
            let Some(kind) = Kind::ALL
                .into_iter()
                .find(|kind| document["kind"] == kind.name())
            else {
                continue;
            };
            let name = document["metadata"]["name"].as_str().expect("a name");
            let path = format!("{}/{name}", collection(kind));
            let applied = self.apply(&path, document.to_string().as_bytes());
            let found: Vec<_> = problems(kind, applied)
                .iter()
                .map(ToString::to_string)
                .collect();
            self.demand(found.is_empty(), || format!("{path}: {}", found.join("; ")));
        }
    }

    /// Creates an object and reads it back, without its metadata.
    fn create(&mut self, kind: Kind, content: &Value) -> Result<Value, Answer> {
        self.made += 1;
        let name = format!("made-{}", self.made);
        let mut document = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name(),
            "metadata": {"name": name, "namespace": "default"},
        });
        for (name, value) in content.as_object().expect("content is an object") {
            document[name] = value.clone();
        }
        let answer =
            self.cluster
                .json("POST", &format!("{}?{STRICT}", collection(kind)), &document);
        if answer.status != 201 {
            return Err(answer);
        }
        self.demand(answer.header("warning").is_none(), || {
            format!("{kind}: {answer:?}")
        });
        let path = format!("{}/{name}", collection(kind));
        Ok(self.cluster.send("GET", &path, None).json())
    }

    /// That a content is taken and read back as written; the answer is what was read.
    fn kept(&mut self, kind: Kind, content: &Value, what: &str) -> Option<Value> {
        match self.create(kind, content) {
            Ok(found) => {
                self.demand(content_of(&found) == *content, || {
                    format!("{kind}: {what}: {content} became {found}")
                });
                Some(found)
            }
            Err(answer) => {
                self.wrong
                    .push(format!("{kind}: {what}: {}", answer.text()));
                None
            }
        }
    }

    fn every_field_is_kept(&mut self, tried: &Tried<'_>) {
        self.kept(tried.kind, &sample(&tried.schema), "every field");
    }

    /// At every level, all at once; and the controller finds each of them.
    fn unknown_fields_are_kept(&mut self, tried: &Tried<'_>) {
        const UNKNOWN: &str = "noSuchField";
        let mut content = sample(&tried.schema);
        let mut planted = BTreeSet::new();
        every(&tried.schema, &At::default(), &mut |at, schema| {
            if schema.get("properties").is_some() {
                let level = content.pointer_mut(&at.pointer).expect("it is there");
                level[UNKNOWN] = json!({"deeper": [1, "two"]});
                planted.insert(at.path.member(UNKNOWN).to_string());
            }
        });
        if let Some(found) = self.kept(tried.kind, &content, "unknown fields") {
            let seen: BTreeSet<_> = problems(tried.kind, found)
                .into_iter()
                .filter(|problem| problem.code == ProblemCode::UnknownField)
                .map(|problem| problem.path.to_string())
                .collect();
            self.demand(seen == planted, || {
                format!("{}: planted {planted:?}, seen {seen:?}", tried.kind)
            });
        }
    }

    /// `ipRestriction:` with nothing behind it must not vanish on the way to the controller, which
    /// refuses it (R14): the server refuses it, fills in a default, or we find it.
    fn nothing_is_noticed(&mut self, tried: &Tried<'_>) {
        let mut places = Vec::new();
        every(&tried.schema, &At::default(), &mut |at, schema| {
            places.push((at.clone(), schema.get("default").is_some()));
        });
        let kind = tried.kind;
        for (at, default) in places.into_iter().skip(1) {
            let Ok(found) = self.create(kind, &tried.with(&at, Value::Null)) else {
                continue;
            };
            let now = found.pointer(&at.pointer).cloned();
            let filled = default && now.as_ref().is_some_and(Value::is_string);
            let noticed = problems(kind, found)
                .iter()
                .any(|problem| problem.path == at.path);
            self.demand(filled || noticed, || {
                format!(
                    "{kind}: {}: nothing became {now:?}, and is accepted",
                    at.path
                )
            });
        }
    }

    fn what_the_schema_refuses(&mut self, tried: &Tried<'_>) {
        let mut cases = Vec::new();
        every(&tried.schema, &At::default(), &mut |at, schema| {
            for value in refused(schema)
                .into_iter()
                .filter(|_| !at.pointer.is_empty())
            {
                cases.push((at.path.clone(), tried.with(at, value)));
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                let field = at.member(name.as_str().expect("a name"));
                let mut content = sample(&tried.schema);
                let level = content
                    .pointer_mut(&at.pointer)
                    .and_then(Value::as_object_mut);
                level
                    .expect("an object")
                    .remove(name.as_str().expect("a name"));
                cases.push((field.path, content));
            }
        });
        for (path, content) in cases {
            let kind = tried.kind;
            match self.create(kind, &content) {
                Ok(_) => self.wrong.push(format!("{kind}: {path}: taken: {content}")),
                Err(answer) => {
                    let right = answer.status == 422 && answer.text().contains(path.as_str());
                    self.demand(right, || format!("{kind}: {path}: {}", answer.text()));
                }
            }
        }
    }

    /// Whoever writes status changes nothing else and the reverse, and its columns are printed.
    fn status_is_apart(&mut self, tried: &Tried<'_>) {
        let Tried {
            kind, definition, ..
        } = tried;
        let content = sample(&tried.schema);
        let mut object = self.create(*kind, &content).expect("taken before");
        self.demand(object.get("status").is_none(), || {
            format!("{kind}: status from a user")
        });
        let path = object_path(*kind, &object);
        let schema = &version(definition)["schema"]["openAPIV3Schema"]["properties"]["status"];
        let status = if schema.is_null() {
            json!({"any": "thing"})
        } else {
            sample(schema)
        };
        for name in content.as_object().into_iter().flat_map(Map::keys) {
            object.as_object_mut().expect("an object").remove(name);
        }
        for (name, value) in content.as_object().expect("an object") {
            object[name] = value.clone();
        }
        object["status"] = status.clone();
        let answer = self
            .cluster
            .json("PUT", &format!("{path}/status?{STRICT}"), &object);
        self.demand(answer.status == 200, || {
            format!("{kind}: status: {}", answer.text())
        });
        let mut found = self.cluster.send("GET", &path, None).json();
        self.demand(found["status"] == status, || {
            format!("{kind}: status became {found}")
        });
        self.demand(content_of(&found) == content, || {
            format!("{kind}: status changed {found}")
        });

        found["status"] = json!({"id": "forged"});
        let answer = self.cluster.json("PUT", &path, &found);
        self.demand(answer.json()["status"] == status, || {
            format!("{kind}: status was forged")
        });
        self.columns(tried, &path, &found);
    }

    fn columns(&mut self, tried: &Tried<'_>, path: &str, object: &Value) {
        let table = self
            .cluster
            .get_as(path, "application/json;as=Table;g=meta.k8s.io;v=v1")
            .json();
        let shown: Vec<_> = rows(&table["columnDefinitions"], "name");
        let ours = rows(
            &version(tried.definition)["additionalPrinterColumns"],
            "name",
        );
        let kind = tried.kind;
        let expected = if ours.is_empty() {
            vec![json!("Age")]
        } else {
            ours
        };
        self.demand(shown.get(1..) == Some(&expected[..]), || {
            format!("{kind}: columns {shown:?}")
        });
        let cells = table["rows"][0]["cells"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let full = cells.iter().all(|cell| !cell.is_null() && cell != "");
        self.demand(full && cells.len() == shown.len(), || {
            format!("{kind}: {cells:?} of {object}")
        });
    }
}

fn rows(list: &Value, name: &str) -> Vec<Value> {
    let rows = list.as_array().into_iter().flatten();
    rows.map(|row| row[name].clone()).collect()
}

/// The documents of a YAML text.
fn documents(text: &[u8]) -> Vec<Value> {
    let documents = parse(text, &Limits::default()).expect("it parses");
    documents
        .iter()
        .map(|document| document.root.to_json())
        .collect()
}

/// Where objects of a kind are, in the namespace `default`.
fn collection(kind: Kind) -> String {
    let version = kind.api_version();
    let root = if version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let namespace = if kind.is_namespaced() {
        "namespaces/default/"
    } else {
        ""
    };
    format!("{root}/{version}/{namespace}{}", kind.plural())
}

fn object_path(kind: Kind, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().expect("a name");
    format!("{}/{name}", collection(kind))
}

/// What the user wrote of an object.
fn content_of(object: &Value) -> Value {
    let mut content = object.clone();
    let fields = content.as_object_mut().expect("an object");
    for name in ["apiVersion", "kind", "metadata", "status"] {
        fields.remove(name);
    }
    content
}

fn condition<'a>(definition: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = definition["status"]["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == name)?;
    found["status"].as_str()
}

/// What our decoding finds wrong with an object as the server hands it out.
fn problems(kind: Kind, document: Value) -> Vec<Problem> {
    let source = Source {
        default_namespace: "default".to_owned(),
        origin: Origin::Cluster,
        age: 1,
        problems: Vec::new(),
    };
    let object = match decode(kind, document, source) {
        Ok(object) => object,
        Err(finding) => return vec![finding.problem],
    };
    macro_rules! found {
        ($($kind:ident),*) => {
            match object {
                $(AnyObject::$kind(object) => object.value.as_ref().err().cloned(),)*
            }
        };
    }
    let undecodable = found!(
        NgrokModuleSet,
        HttpsEdge,
        TcpEdge,
        TlsEdge,
        Tunnel,
        Domain,
        IpPolicy,
        NgrokTrafficPolicy,
        Ingress,
        IngressClass,
        Service,
        EndpointSlice,
        Secret,
        ConfigMap,
        Namespace
    );
    undecodable
        .map(|undecodable| undecodable.problems)
        .unwrap_or_default()
}
