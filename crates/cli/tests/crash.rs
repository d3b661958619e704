//! kill -9 at random moments, of `up` and of controller and edge as two processes, while routes
//! change and while others are held, lost, tombstoned, closed or pending (R10, R19).
//!
//! After each restart the last complete state serves at once; probers that know nothing but what
//! was declared see refused, old or new; everything converges without duplicates; ages go on.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use common::{Place, guarded, ingress, module_set, policy, service, service_object};
use model::status::{RouteState, Status};
use serde_json::Value;
use testkit::{
    backend::Backend,
    faults::FaultProxy,
    prober::{Declaration, History, Probe, Probers, Target},
    process::Portcullis,
    seed::{Chance, rounds},
    wait::until,
};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(30);
/// From a written file to the end of what it causes takes about this long.
const LONGEST_MOMENT: Duration = Duration::from_millis(450);

/// Backends of tests are on loopback, which an edge calls only where it is told to (R20).
const LOOPBACK: [&str; 2] = ["--dial-allow", "127.0.0.0/8"];

fn one() -> IpAddr {
    "127.0.0.1".parse().expect("an address")
}

fn two() -> IpAddr {
    "127.0.0.2".parse().expect("an address")
}

fn declaration(set: &str, round: u32, wide: bool) -> Declaration {
    Declaration {
        set: format!("{set}-{round}"),
        backend: if round.is_multiple_of(3) {
            "web-a"
        } else {
            "web-b"
        }
        .to_owned(),
        admits: if wide {
            vec![one(), two()]
        } else {
            vec![one()]
        },
    }
}

/// The processes, and what outlives them.
struct World {
    place: Place,
    /// `--service`, and how the controller's half is told to take its time.
    driving: Vec<String>,
    /// `up`, or the edge.
    edge: Option<Portcullis>,
    controller: Option<Portcullis>,
    /// In front of the edge's API, so that the controller finds it again at one address.
    way: Option<FaultProxy>,
    two_processes: bool,
    target: Target,
}

impl World {
    fn new(backends: &[Backend; 2], two_processes: bool, more: &[&str]) -> Self {
        let mut driving = Vec::new();
        for (name, backend) in ["web-a", "web-b"].iter().zip(backends) {
            driving.extend(["--service".to_owned(), service(name, backend.address)]);
        }
        driving.extend(more.iter().map(|argument| (*argument).to_owned()));
        Self {
            place: Place::new(),
            driving,
            edge: None,
            controller: None,
            way: None,
            two_processes,
            target: Arc::default(),
        }
    }

    /// Starts what does not run.
    fn start(&mut self) {
        let driving: Vec<&str> = self.driving.iter().map(String::as_str).collect();
        if self.edge.is_none() {
            let edge = if self.two_processes {
                self.place.edge(&LOOPBACK)
            } else {
                self.place.up(&driving)
            };
            let api = edge.address("api");
            self.way
                .get_or_insert_with(|| FaultProxy::start(api))
                .set_upstream(api);
            *self.target.lock().expect("no holder panics") = Some(edge.client());
            self.edge = Some(edge);
        }
        if self.two_processes && self.controller.is_none() {
            let way = self.way.as_ref().expect("it is there").address;
            self.controller = Some(self.place.controller(way, &driving));
        }
    }

    /// kill -9 of one of the processes, or of both.
    fn kill(&mut self, chance: &mut Chance) {
        let which = if self.two_processes {
            chance.below(3)
        } else {
            0
        };
        if which != 1
            && let Some(mut edge) = self.edge.take()
        {
            *self.target.lock().expect("no holder panics") = None;
            edge.kill();
        }
        if which != 0
            && let Some(mut controller) = self.controller.take()
        {
            controller.kill();
        }
    }

    fn status(&self) -> Result<Status, String> {
        let told = if self.two_processes {
            &self.controller
        } else {
            &self.edge
        };
        told.as_ref().ok_or("it does not run")?.try_status()
    }

    fn logs(&self) -> String {
        let all = [&self.edge, &self.controller];
        all.iter()
            .filter_map(|p| p.as_ref().map(Portcullis::log))
            .collect()
    }

    fn answers(&self, source: IpAddr, path: &str) -> Result<(u16, String), String> {
        let client = self.target.lock().expect("no holder panics").clone();
        let client = client.ok_or("the edge does not run")?.from_address(source);
        let answer = client.get(HOST, path).map_err(|error| error.to_string())?;
        Ok((answer.status, answer.text()))
    }

    fn wait_state(&self, path: &str, state: RouteState, code: Option<&str>) {
        until(&format!("{path} is {}", state.name()), LIMIT, || {
            let status = self.status()?;
            let route = status.routes.iter().find(|route| route.path == path);
            let content = route.is_some_and(|route| {
                route.state == state
                    && code.is_none_or(|code| route.reasons.iter().any(|r| r.code == code))
            });
            if content {
                Ok(())
            } else {
                Err(format!("{route:#?} {}", self.logs()))
            }
        });
    }

    /// State and age of every route that is not under change.
    fn ages(&self) -> Result<BTreeMap<String, (RouteState, Option<String>)>, String> {
        let quiet = self
            .status()?
            .routes
            .into_iter()
            .filter(|route| route.path != "/");
        Ok(quiet
            .map(|route| (route.path, (route.state, route.since)))
            .collect())
    }

    /// Waits until the route under change is as declared, and the edge holds nothing twice and
    /// nothing that nobody needs.
    fn converge(&self, declared: &Declaration, routes: usize) {
        until("the newest declaration is in force", LIMIT, || {
            let (status, text) = self.answers(one(), "/")?;
            let set = format!("[\"x-set\",\"{}\"]", declared.set);
            if status == 200 && text.contains(&set) {
                Ok(())
            } else {
                Err(format!("{status} {text} {}", self.logs()))
            }
        });
        let api = self.edge.as_ref().expect("it runs").address("api");
        until("nothing is there twice", LIMIT, || {
            let state = self.place.state(api)?;
            counted(&state, routes)
        });
    }
}

/// One edge with its routes, each place once; one domain; backends and policies that routes refer
/// to and no others, no Service twice.
fn counted(state: &Value, routes: usize) -> Result<(), String> {
    let things = |of: &Value| of.as_object().cloned().unwrap_or_default();
    let edges = things(&state["edges"]);
    let all: Vec<Value> = edges
        .values()
        .flat_map(|edge| things(&edge["routes"]).into_iter().map(|(_, route)| route))
        .collect();
    let places: BTreeSet<String> = all.iter().map(|route| route["place"].to_string()).collect();
    let said: String = all.iter().map(ToString::to_string).collect();
    let (backends, policies) = (things(&state["backends"]), things(&state["ip_policies"]));
    let services: BTreeSet<String> = backends
        .values()
        .map(|b| b["service"].to_string())
        .collect();
    let unused: Vec<&String> = backends
        .keys()
        .chain(policies.keys())
        .filter(|id| !said.contains(*id))
        .collect();
    let domains = things(&state["domains"]).len();
    let counts = (edges.len(), all.len(), places.len(), domains);
    if counts == (1, routes, routes, 1) && services.len() == backends.len() && unused.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{counts:?}, {services:?} of {} backends, unused {unused:?}",
            backends.len()
        ))
    }
}

/// Routes that are held, lost, removed and closed, while `/` is open and changes.
fn quiet_routes(world: &mut World, histories: &BTreeMap<&str, History>, first: &Declaration) {
    let base = service_object("web-a") + &service_object("web-b");
    let set = |name: &str| declaration(name, 0, false);
    for (path, history) in histories {
        let name = path.trim_start_matches('/');
        let opens = !matches!(*path, "/" | "/never");
        history.declare(opens.then(|| set(name)));
    }
    histories["/"].declare(Some(first.clone()));
    let place = &world.place;
    place.write("base.yaml", &base);
    place.write("churn.yaml", &guarded("churn", HOST, "/", first));
    let whole = |name: &str| guarded(name, HOST, &format!("/{name}"), &set(name));
    for name in ["held", "lost", "gone"] {
        place.write(&format!("{name}.yaml"), &whole(name));
    }
    let never =
        module_set("never", &["nowhere"]) + &ingress("never", HOST, "/never", "never", "web-a");
    place.write("never.yaml", &never);
    world.start();
    for path in ["/", "/held", "/lost", "/gone"] {
        world.wait_state(path, RouteState::Open, None);
    }
    world.wait_state("/never", RouteState::Closed, None);
    world
        .place
        .write("held.yaml", &whole("held").replace("/32", "/99"));
    let lost = whole("lost").replace(&policy("lost", &["127.0.0.1/32"]), "");
    world.place.write("lost.yaml", &lost);
    world.place.remove("gone.yaml");
    world.wait_state("/held", RouteState::Held, None);
    world.wait_state("/lost", RouteState::Held, Some("lost"));
    world.wait_state("/gone", RouteState::Removing, None);
    histories["/gone"].declare(None);
    histories["/gone"].in_force();
}

/// What must be so from the first request after a restart on.
fn serves_at_once(world: &World) {
    let mut wrong = Vec::new();
    for (source, path, wanted) in [
        (one(), "/", 200),
        (one(), "/held", 200),
        (two(), "/held", 403),
        (one(), "/lost", 200),
        (two(), "/lost", 403),
        (one(), "/gone", 503),
        (one(), "/never", 503),
    ] {
        let answer = world.answers(source, path);
        if !answer.as_ref().is_ok_and(|(status, _)| *status == wanted) {
            wrong.push(format!("{source} {path}: {answer:?}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} {}", world.logs());
}

fn killed_at_random(two_processes: bool, kills: u32) {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let backends = ["web-a", "web-b"].map(Backend::start);
    let quiet = ["--lost-grace", "1h", "--tombstone", "1h"];
    let mut world = World::new(&backends, two_processes, &quiet);
    let paths = ["/", "/held", "/lost", "/gone", "/never"];
    let histories: BTreeMap<&str, History> = paths
        .iter()
        .map(|path| (*path, History::default()))
        .collect();
    quiet_routes(&mut world, &histories, &declaration("set", 0, true));
    let mut ages = world.ages().expect("the status can be read");
    let probes = [
        ("/", true),
        ("/", false),
        ("/held", false),
        ("/gone", true),
        ("/never", true),
    ];
    let probes = probes.iter().flat_map(|(path, kept)| {
        let history = histories[path].clone();
        [one(), two()].map(|source| Probe {
            host: HOST.to_owned(),
            path: (*path).to_owned(),
            source,
            kept: *kept,
            strict: false,
            history: history.clone(),
        })
    });
    let probers = Probers::start(&world.target, probes.collect());
    for round in 1..=kills {
        let declared = declaration("set", round, chance.below(2) == 0);
        histories["/"].declare(Some(declared.clone()));
        world
            .place
            .write("churn.yaml", &guarded("churn", HOST, "/", &declared));
        let pending = round > kills / 2 && chance.below(2) == 0;
        if pending {
            // Half a file: what it may declare is pending until it is whole again.
            world
                .place
                .write("half.yaml", "kind: IPPolicy\nmetadata: {name: half\n");
        }
        chance.moment(LONGEST_MOMENT);
        world.kill(&mut chance);
        let begun = Instant::now();
        world.start();
        serves_at_once(&world);
        if pending {
            let mentioned = |wanted: bool| {
                until("half a file is noticed, and its end", LIMIT, || {
                    let status = world.status()?;
                    let found = format!("{:?}", status.diagnostics).contains("half.yaml");
                    if found == wanted {
                        Ok(())
                    } else {
                        Err(format!("{status:#?}"))
                    }
                });
            };
            mentioned(true);
            world.place.remove("half.yaml");
            mentioned(false);
        }
        world.converge(&declared, paths.len());
        histories["/"].in_force();
        if pending {
            // What was lost might have been in that file: its grace did not run, and goes on with
            // what is left of it from when it is known not to be there. That is when it is lost
            // again, so the instant is another one.
            ages.remove("/lost");
        }
        world.wait_state("/lost", RouteState::Held, Some("lost"));
        until("ages go on", LIMIT, || match world.ages()? {
            now if ages.iter().all(|(path, age)| now.get(path) == Some(age)) => Ok(()),
            now => Err(format!(
                "seed {seed}, round {round}: {now:#?}, not {ages:#?}"
            )),
        });
        assert!(
            begun.elapsed() < LIMIT,
            "seed {seed}, round {round}: it took {:?}",
            begun.elapsed()
        );
        probers.assert_content();
    }
    probers.finish();
    let all: Vec<Value> = backends.iter().flat_map(Backend::seen).collect();
    let (root, others): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|r| r["target"] == "/");
    assert_eq!(
        histories["/"].mixes(&root),
        Vec::<String>::new(),
        "seed {seed}"
    );
    for path in &paths[1..] {
        let own: Vec<Value> = others
            .iter()
            .filter(|r| r["target"] == *path)
            .cloned()
            .collect();
        assert_eq!(
            histories[path].mixes(&own),
            Vec::<String>::new(),
            "seed {seed}"
        );
    }
}

#[test]
fn up_is_killed_at_random_moments() {
    killed_at_random(false, rounds(15, 100));
}

#[test]
fn controller_and_edge_are_killed_at_random_moments() {
    killed_at_random(true, rounds(15, 100));
}

/// When a route is to close is stored at the edge: it closes at that time although the process
/// was killed meanwhile, and although no controller ever comes back.
#[test]
fn the_edge_closes_what_is_lost_without_its_controller() {
    let backends = ["web-a", "web-b"].map(Backend::start);
    let mut world = World::new(&backends, true, &["--lost-grace", "8s"]);
    let declared = declaration("set", 0, false);
    let base = service_object("web-a") + &service_object("web-b");
    let whole = base + &guarded("lost", HOST, "/", &declared);
    world.place.write("all.yaml", &whole);
    world.start();
    world.wait_state("/", RouteState::Open, None);
    let lost = whole.replace(&policy("lost", &["127.0.0.1/32"]), "");
    world.place.write("all.yaml", &lost);
    world.wait_state("/", RouteState::Held, Some("lost"));
    let closes_at = |world: &World| {
        let api = world.edge.as_ref().expect("it runs").address("api");
        let state = world.place.state(api).expect("the state can be read");
        let all = state["edges"]
            .as_object()
            .into_iter()
            .flat_map(|edges| edges.values());
        let routes = all.flat_map(|edge| {
            edge["routes"]
                .as_object()
                .into_iter()
                .flat_map(|r| r.values())
        });
        routes
            .filter_map(|route| route["record"]["close_at"].as_u64())
            .next()
    };
    let before = closes_at(&world);
    assert!(before.is_some(), "the deadline is stored");
    drop(world.controller.take());
    world.edge.take().expect("it runs").kill();
    let edge = world.place.edge(&LOOPBACK);
    *world.target.lock().expect("no holder panics") = Some(edge.client());
    world.edge = Some(edge);
    assert_eq!(
        world.answers(one(), "/").map(|answer| answer.0),
        Ok(200),
        "the grace runs"
    );
    assert_eq!(
        closes_at(&world),
        before,
        "a restart does not move the deadline"
    );
    until("the edge closes by itself", LIMIT, || {
        match world.answers(one(), "/")? {
            (503, _) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    assert_eq!(world.answers(two(), "/").map(|answer| answer.0), Ok(503));
}
