//! Whose a host is (R20). A host belongs to the namespace that the edge remembers, or else to the
//! one whose declaration is oldest; a wildcard owns every name below it. A claim that is refused
//! contributes nothing at all.

use std::collections::{BTreeMap, BTreeSet};

use model::{diagnostic::Diagnostic, host::HostPattern};

use crate::{
    codes::Code,
    options::Options,
    records::{HostRecord, Records},
    wish::Wish,
};

/// A host, told from the right: names below a wildcard lie next to each other.
type Reversed = String;

fn reversed(host: &HostPattern) -> Reversed {
    let name = host.suffix().unwrap_or_else(|| host.as_str());
    let mut labels: Vec<&str> = name.split('.').collect();
    labels.reverse();
    let mut text = labels.join(".");
    text.push('.');
    if host.is_wildcard() {
        text.push('*');
    }
    text
}

/// Who owns what, so far.
struct Owners<'a> {
    options: &'a Options,
    records: &'a Records,
    by_name: BTreeMap<Reversed, (HostPattern, String)>,
    /// Wildcards, each with the namespaces that say so and those whom they let declare names
    /// below. Only the owner's word counts.
    shared: BTreeMap<HostPattern, BTreeSet<(String, String)>>,
}

/// Settles every claim. Hosts that are refused are taken out of their wish; `pending` says
/// whether something of a host's recorded owner may still be declared though it is not here.
pub(crate) fn settle(
    wishes: &mut [Wish<'_>],
    (records, options): (&Records, &Options),
    pending: impl Fn(&HostRecord) -> bool,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let claimed: BTreeSet<(HostPattern, String)> = wishes
        .iter()
        .flat_map(|wish| {
            wish.hosts
                .keys()
                .map(|host| (host.clone(), wish.object.namespace.clone()))
        })
        .collect();
    let mut owners = Owners {
        options,
        records,
        by_name: BTreeMap::new(),
        shared: BTreeMap::new(),
    };
    owners.remember(&claimed, pending);
    owners.share(wishes);
    let contested = contested(&claimed);
    let mut told = BTreeSet::new();
    for wish in wishes.iter_mut() {
        let namespace = wish.object.namespace.clone();
        let hosts: Vec<HostPattern> = wish.hosts.keys().cloned().collect();
        for host in hosts {
            let fresh = owners.owner(&host).is_none();
            let field = wish.hosts[&host].field.clone();
            match owners.claim(&host, &namespace) {
                Ok(()) => {
                    let others = contested
                        .get(&host)
                        .filter(|_| fresh && told.insert(host.clone()));
                    if let Some(others) = others {
                        let others: Vec<&str> = others
                            .iter()
                            .filter(|other| **other != namespace)
                            .map(String::as_str)
                            .collect();
                        let message = format!(
                            "{host} is claimed by {} too; this declaration is the oldest, so the host is the namespace {namespace}'s",
                            others.join(", ")
                        );
                        diagnostics.push(wish.site().finding(
                            Code::HostContested,
                            &field,
                            message,
                            "agree on one namespace for the host",
                        ));
                    }
                }
                Err(refusal) => {
                    diagnostics.push(refusal.finding(wish, &host, &field));
                    wish.hosts.remove(&host);
                }
            }
        }
    }
}

/// The hosts that several namespaces claim, with those.
fn contested(claimed: &BTreeSet<(HostPattern, String)>) -> BTreeMap<HostPattern, Vec<String>> {
    let mut by_host: BTreeMap<HostPattern, Vec<String>> = BTreeMap::new();
    for (host, namespace) in claimed {
        by_host
            .entry(host.clone())
            .or_default()
            .push(namespace.clone());
    }
    by_host.retain(|_, namespaces| namespaces.len() > 1);
    by_host
}

/// Why a claim is refused.
enum Refusal {
    /// `--hosts` does not admit it.
    NotAllowed,
    /// Another namespace owns the host, or a wildcard above it, or a name below it.
    Owned {
        host: HostPattern,
        by: String,
        undeclared: bool,
    },
}

impl Refusal {
    fn finding(
        &self,
        wish: &Wish<'_>,
        host: &HostPattern,
        field: &resources::problem::FieldPath,
    ) -> Diagnostic {
        let namespace = &wish.object.namespace;
        match self {
            Self::NotAllowed => wish.site().finding(
                Code::HostNotAllowed,
                field,
                format!("the namespace {namespace} may not claim {host}"),
                "use a host that --hosts gives to this namespace, or ask the operator to change that",
            ),
            Self::Owned { host: owned, by, undeclared } => {
                let message = if owned == host {
                    format!("{host} belongs to the namespace {by}, so nothing of this declaration is used for it")
                } else {
                    format!("{owned} belongs to the namespace {by}, so {host} cannot be this one's")
                };
                let remedy = if *undeclared {
                    format!("nothing declares it any more: wait for --host-release, or run `portcullis domains release {owned}`")
                } else if host.owns(owned) && host != owned {
                    // Assigning would hand over the host below, which is not what is asked for.
                    format!("declare the hosts themselves instead of {host}, or let the namespace {by} declare {host}")
                } else {
                    format!("declare another host, or have it given to this namespace: `portcullis domains assign {owned} {namespace}`")
                };
                wish.site().finding(Code::HostConflict, field, message, remedy)
            }
        }
    }
}

impl Owners<'_> {
    fn take(&mut self, host: &HostPattern, namespace: &str) {
        self.by_name
            .insert(reversed(host), (host.clone(), namespace.to_owned()));
    }

    /// Takes over what the edge remembers.
    fn remember(
        &mut self,
        claimed: &BTreeSet<(HostPattern, String)>,
        pending: impl Fn(&HostRecord) -> bool,
    ) {
        for (host, record) in &self.records.hosts {
            let namespace = record.namespace.as_ref().filter(|name| !name.is_empty());
            let Some(namespace) = namespace else { continue };
            let claims = |namespace: &String| claimed.contains(&(host.clone(), namespace.clone()));
            // The owner's last word takes effect with its last declaration's end, not before.
            let (owner, still) = match &record.heir {
                _ if claims(namespace) || pending(record) => (namespace, true),
                Some(heir) => (heir, claims(heir)),
                None => (namespace, false),
            };
            if still || !self.options.release_hosts_at_once {
                self.take(host, owner);
            }
        }
    }

    /// Notes who lets whom declare names below a wildcard.
    fn share(&mut self, wishes: &[Wish<'_>]) {
        for wish in wishes {
            let Some(to) = &wish.hand_over else { continue };
            for host in wish.hosts.keys().filter(|host| host.is_wildcard()) {
                let word = (wish.object.namespace.clone(), to.clone());
                self.shared.entry(host.clone()).or_default().insert(word);
            }
        }
    }

    fn owner(&self, host: &HostPattern) -> Option<&str> {
        self.by_name
            .get(&reversed(host))
            .map(|(_, namespace)| namespace.as_str())
    }

    fn claim(&mut self, host: &HostPattern, namespace: &str) -> Result<(), Refusal> {
        if !self.admits(host, namespace) {
            return Err(Refusal::NotAllowed);
        }
        if let Some(owner) = self.owner(host) {
            return if owner == namespace {
                Ok(())
            } else {
                Err(self.owned(host, owner))
            };
        }
        for above in wildcards_above(host) {
            match self.owner(&above) {
                Some(owner) if owner != namespace && !self.is_shared(&above, owner, namespace) => {
                    return Err(self.owned(&above, owner));
                }
                Some(_) => break,
                None => {}
            }
        }
        if host.is_wildcard() {
            let begin = reversed(host).trim_end_matches('*').to_owned();
            let below = self
                .by_name
                .range(begin.clone()..)
                .take_while(|(name, _)| name.starts_with(&begin));
            // The wildcard's own name, without the star, is not below it.
            let foreign = below
                .filter(|(name, _)| **name != begin)
                .map(|(_, owned)| owned)
                .find(|(_, owner)| owner != namespace);
            if let Some((below, owner)) = foreign {
                return Err(self.owned(below, owner));
            }
        }
        self.take(host, namespace);
        Ok(())
    }

    fn owned(&self, host: &HostPattern, by: &str) -> Refusal {
        let record = self.records.hosts.get(host);
        Refusal::Owned {
            host: host.clone(),
            by: by.to_owned(),
            undeclared: record.is_some_and(|record| record.undeclared_since.is_some()),
        }
    }

    fn is_shared(&self, wildcard: &HostPattern, owner: &str, namespace: &str) -> bool {
        let word = (owner.to_owned(), namespace.to_owned());
        self.shared
            .get(wildcard)
            .is_some_and(|words| words.contains(&word))
    }

    /// `--hosts`: a namespace that is named keeps to its patterns, and what a pattern covers is
    /// kept for the namespaces that it is given to.
    fn admits(&self, host: &HostPattern, namespace: &str) -> bool {
        let limits = &self.options.host_limits;
        let covering: Vec<&str> = limits
            .iter()
            .filter(|(_, pattern)| pattern.owns(host))
            .map(|(of, _)| of.as_str())
            .collect();
        let named = limits.iter().any(|(of, _)| of == namespace);
        if covering.is_empty() {
            !named
        } else {
            covering.contains(&namespace)
        }
    }
}

/// The wildcards that own a host, nearest first.
fn wildcards_above(host: &HostPattern) -> impl Iterator<Item = HostPattern> + use<> {
    let mut rest = host.suffix().unwrap_or_else(|| host.as_str()).to_owned();
    std::iter::from_fn(move || {
        let (_, tail) = rest.split_once('.')?;
        rest = tail.to_owned();
        HostPattern::parse(&format!("*.{rest}")).ok()
    })
}
