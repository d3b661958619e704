//! Controller and edge as two processes with a proxy between them that fails as told (R6, R7):
//! what is refused is not asked again until an input changes; what fails on the way is tried again
//! with back-off; an answer that is lost makes no duplicate.

mod common;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Place, guarded, service, service_object};
use model::status::RouteState;
use testkit::{
    backend::Backend,
    faults::{Call, Fault, FaultProxy},
    prober::{Declaration, History, Probe, Probers},
    process::Portcullis,
    seed::Chance,
    wait::until,
};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(30);
/// Longer than every wait between two attempts that a failure could lead to at first.
const LONG_ENOUGH: Duration = Duration::from_secs(3);

/// Two processes with the proxy between them, and one route.
struct World {
    web: Backend,
    place: Place,
    proxy: FaultProxy,
    edge: Portcullis,
    history: History,
}

impl World {
    fn new() -> Self {
        let web = Backend::start("web");
        let place = Place::new();
        let edge = place.edge(&["--dial-allow", "127.0.0.0/8"]);
        let proxy = FaultProxy::start(edge.address("api"));
        let history = History::default();
        Self {
            web,
            place,
            proxy,
            edge,
            history,
        }
    }

    fn controller(&self) -> Portcullis {
        let web = service("web", self.web.address);
        self.place
            .controller(self.proxy.address, &["--service", &web])
    }

    /// Declares the one route, with a set of this name.
    fn declare(&self, set: &str) {
        let declared = Declaration {
            set: set.to_owned(),
            backend: "web".to_owned(),
            admits: vec![address("127.0.0.1")],
        };
        self.history.declare(Some(declared.clone()));
        let text = service_object("web") + &guarded("web", HOST, "/", &declared);
        self.place.write("web.yaml", &text);
    }

    /// Waits until a set serves, and until the controller is at rest.
    fn serves(&self, controller: &Portcullis, set: &str) {
        let client = self.edge.client();
        until("the set serves", LIMIT, || {
            let answer = client.get(HOST, "/").map_err(|error| error.to_string())?;
            let wanted = format!("[\"x-set\",\"{set}\"]");
            if answer.text().contains(&wanted) {
                Ok(())
            } else {
                Err(format!(
                    "{} {} {}",
                    answer.status,
                    answer.text(),
                    controller.log()
                ))
            }
        });
        self.history.in_force();
        let _open = controller.wait_route(HOST, "/", RouteState::Open);
    }

    /// Commands that open the route with this set.
    fn openings(&self, set: &str) -> Vec<Call> {
        self.proxy.calls(|call| opens(call, set))
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn opens(call: &Call, set: &str) -> bool {
    call.is_command("replace_edge") && call.body.contains(&format!("\"x-set\":\"{set}\""))
}

#[test]
fn what_is_refused_is_asked_once_and_not_again_until_an_input_changes() {
    let world = World::new();
    world.declare("first");
    let controller = world.controller();
    world.serves(&controller, "first");
    for (number, status) in [400, 403, 405, 413, 422].into_iter().enumerate() {
        let (refused, mended) = (format!("refused-{number}"), format!("mended-{number}"));
        let wrong = refused.clone();
        world.proxy.script(move |call| {
            if opens(call, &wrong) {
                Fault::answer(status, "made_by_a_test")
            } else {
                Fault::None
            }
        });
        world.declare(&refused);
        let held = controller.wait_route(HOST, "/", RouteState::Held);
        let said = format!("{:?}", held.reasons);
        assert!(
            said.contains("made by a test"),
            "{status}: the edge's words are shown: {said}"
        );
        let before = world.proxy.calls(Call::is_write).len();
        std::thread::park_timeout(LONG_ENOUGH);
        assert_eq!(
            world.openings(&refused).len(),
            1,
            "{status}: one call and no more"
        );
        assert_eq!(
            world.proxy.calls(Call::is_write).len(),
            before,
            "{status}: at rest"
        );
        let answer = world.edge.client().get(HOST, "/").expect("it answers");
        assert_eq!(
            answer.status, 200,
            "{status}: held, it serves what it served"
        );
        // Something else changes: what was refused is not asked again for that.
        world.place.write("other.yaml", &service_object("other"));
        std::thread::park_timeout(Duration::from_secs(1));
        assert_eq!(
            world.openings(&refused).len(),
            1,
            "{status}: no input of it changed"
        );
        world.declare(&mended);
        world.serves(&controller, &mended);
        assert_eq!(world.openings(&mended).len(), 1, "{status}");
    }
}

#[test]
fn what_fails_on_the_way_is_tried_again_with_back_off() {
    let world = World::new();
    world.declare("first");
    let controller = world.controller();
    world.serves(&controller, "first");
    let faults = [
        Fault::answer(408, "late"),
        Fault::answer(425, "early"),
        Fault::answer(429, "busy"),
        Fault::answer(500, "broken"),
        Fault::answer(502, "broken"),
        Fault::answer(503, "broken"),
        Fault::answer(504, "late"),
        Fault::CutAfterRequest,
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let set = format!("set-{number}");
        let (wanted, given, mut left) = (set.clone(), fault.clone(), 3);
        world.proxy.script(move |call| {
            if left > 0 && opens(call, &wanted) {
                left -= 1;
                given.clone()
            } else {
                Fault::None
            }
        });
        world.declare(&set);
        world.serves(&controller, &set);
        let calls = world.openings(&set);
        let fates: Vec<&Fault> = calls.iter().map(|call| &call.fault).collect();
        assert_eq!(
            fates,
            [&fault, &fault, &fault, &Fault::None],
            "three failures and no call more"
        );
        // 250 ms, doubling, each between its half and its whole.
        for (pair, least) in calls.windows(2).zip([125, 250, 500]) {
            let waited = pair[1].at - pair[0].at;
            assert!(
                waited >= Duration::from_millis(least),
                "{fault:?}: {waited:?}, not {least} ms"
            );
        }
        let reads = world
            .proxy
            .calls(|call| !call.is_write() && call.at > calls[0].at && call.at < calls[3].at);
        assert!(
            reads.len() >= 3,
            "after each failure the edge is read before anything else (R6)"
        );
    }
    // The edge says how long to wait.
    let mut left = 1;
    world.proxy.script(move |call| {
        if left > 0 && opens(call, "patient") {
            left -= 1;
            Fault::answer(429, "busy").retry_after(2)
        } else {
            Fault::None
        }
    });
    world.declare("patient");
    world.serves(&controller, "patient");
    let calls = world.openings("patient");
    assert_eq!(calls.len(), 2);
    assert!(
        calls[1].at - calls[0].at >= Duration::from_secs(2),
        "retry-after is honoured"
    );
}

/// 409: somebody else wrote. The edge is read again at once, and what is still needed is asked.
/// 401: the key is refused. Nothing more is asked until the key file changes.
#[test]
fn conflicts_are_read_again_and_a_refused_key_waits_for_its_file() {
    let world = World::new();
    world.declare("first");
    let controller = world.controller();
    world.serves(&controller, "first");
    let mut left = 3;
    world.proxy.script(move |call| {
        if left > 0 && opens(call, "second") {
            left -= 1;
            Fault::answer(409, "made_by_a_test")
        } else {
            Fault::None
        }
    });
    world.declare("second");
    world.serves(&controller, "second");
    let calls = world.openings("second");
    assert_eq!(calls.len(), 4);
    for pair in calls.windows(2) {
        let between = |call: &Call| call.at > pair[0].at && call.at < pair[1].at;
        let reads = world.proxy.calls(|call| !call.is_write() && between(call));
        assert!(!reads.is_empty(), "it is read before it is asked again");
    }
    world.proxy.script(|call| {
        if call.is_write() {
            Fault::answer(401, "made_by_a_test")
        } else {
            Fault::None
        }
    });
    let before = world.proxy.calls(Call::is_write).len();
    world.declare("third");
    until("a write is refused", LIMIT, || {
        match world.proxy.calls(Call::is_write).len() {
            count if count > before => Ok(()),
            count => Err(count),
        }
    });
    std::thread::park_timeout(LONG_ENOUGH);
    assert_eq!(
        world.proxy.calls(Call::is_write).len(),
        before + 1,
        "one call and no more"
    );
    world.proxy.script(|_| Fault::None);
    // The file is changed by mistake, which the edge itself refuses, and then rightly.
    let file = world.place.data().join("controller-key");
    let key = std::fs::read(&file).expect("it can be read");
    let replace = |bytes: &[u8]| {
        let draft = world.place.data().join("draft");
        std::fs::write(&draft, bytes).expect("it is written");
        std::fs::rename(draft, &file).expect("it is put in place");
    };
    let reads = world.proxy.calls(|call| !call.is_write()).len();
    replace(b"not-a-key");
    until("the wrong key is tried", LIMIT, || {
        match world.proxy.calls(|call| !call.is_write()).len() {
            count if count > reads => Ok(()),
            count => Err(count),
        }
    });
    std::thread::park_timeout(LONG_ENOUGH);
    // A sign of life may be among them; nothing is tried again by itself.
    let tried = world.proxy.calls(|call| !call.is_write()).len();
    assert!(tried <= reads + 2, "{tried} reads after {reads}");
    replace(&key);
    world.serves(&controller, "third");
}

#[test]
fn a_way_that_is_closed_or_slow_is_waited_for() {
    let world = World::new();
    world.declare("first");
    world.proxy.refuse(true);
    let controller = world.controller();
    until("the controller is unready", LIMIT, || {
        let admin = controller.address("admin");
        match testkit::client::plain_get(admin, "localhost", "/readyz", &[]) {
            Ok(answer) if answer.status == 503 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    world.proxy.refuse(false);
    world.serves(&controller, "first");
    let late = Duration::from_secs(1);
    world.proxy.script(move |call| {
        if opens(call, "slow") {
            Fault::Delay(late)
        } else {
            Fault::None
        }
    });
    world.declare("slow");
    world.serves(&controller, "slow");
    assert_eq!(
        world.openings("slow").len(),
        1,
        "what takes long is not asked twice"
    );
}

#[test]
fn answers_that_are_lost_make_no_duplicates() {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let world = World::new();
    world.declare("set-0");
    let controller = world.controller();
    world.serves(&controller, "set-0");
    let target = Arc::new(Mutex::new(Some(world.edge.client())));
    let probes = ["127.0.0.1", "127.0.0.2"].map(|source| Probe {
        host: HOST.to_owned(),
        path: "/".to_owned(),
        source: address(source),
        kept: true,
        strict: true,
        history: world.history.clone(),
    });
    let probers = Probers::start(&target, probes.to_vec());
    for round in 1..=20 {
        // Of the first calls of each round, reads included, some are lost in one way or another.
        let mut fates: Vec<Fault> = Vec::new();
        for _ in 0..4 {
            fates.push(match chance.below(4) {
                0 => Fault::CutBeforeAnswer,
                1 => Fault::CutAfterRequest,
                2 => Fault::answer(503, "broken"),
                _ => Fault::None,
            });
        }
        // Lost for certain: the answer to the opening itself.
        let set = format!("set-{round}");
        let (wanted, mut lost) = (set.clone(), false);
        world.proxy.script(move |call| {
            if !lost && opens(call, &wanted) {
                lost = true;
                return Fault::CutBeforeAnswer;
            }
            if call.is_write() {
                fates.pop().unwrap_or(Fault::None)
            } else {
                Fault::None
            }
        });
        world.declare(&set);
        world.serves(&controller, &set);
        let done = world.openings(&set);
        let applied = done
            .iter()
            .filter(|c| matches!(c.fault, Fault::None | Fault::CutBeforeAnswer));
        assert_eq!(
            applied.count(),
            1,
            "seed {seed}: what was done is seen and not done again"
        );
        probers.assert_content();
    }
    world.proxy.script(|_| Fault::None);
    let api = world.edge.address("api");
    until("nothing is there twice, and nothing unused", LIMIT, || {
        let state = world.place.state(api)?;
        let size = |name: &str| state[name].as_object().map_or(0, serde_json::Map::len);
        let counts = ["edges", "backends", "ip_policies", "domains"].map(size);
        if counts == [1, 1, 1, 1] {
            Ok(())
        } else {
            Err(format!("seed {seed}: {counts:?}"))
        }
    });
    probers.finish();
    assert_eq!(
        world.history.mixes(&world.web.seen()),
        Vec::<String>::new(),
        "seed {seed}"
    );
}
