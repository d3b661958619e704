//! The chain: a route's modules in their one order, and the verdict on a request.
//!
//! Guarantee: a chain exists only if every module in it is enforced (R10); what cannot be
//! compiled is an error, and the caller makes the route refuse. An error in a module refuses the
//! request (R11). No place here has a `_`: a new kind of module does not compile until it has
//! been given its place.

use std::{collections::BTreeSet, net::IpAddr};

use model::{
    address::canonical,
    module::{HeaderChanges, IpRestriction, IpRules, ModuleKind, Modules},
};

use crate::{
    modules::{
        headers::{Direction, HeaderEdits, HeaderProblem},
        ip_restriction::AddressSet,
    },
    refusal::Refusal,
};

/// A place in the order of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Demands on the connection, met before any route is asked (R13).
    EdgeWide,
    /// Allowed and denied addresses.
    IpRestriction,
    /// Allowed and denied user agents.
    UserAgent,
    /// Signatures of webhook senders.
    Webhook,
    /// Login, whichever way.
    Login,
    /// Refusing while the backend fails.
    CircuitBreaker,
    /// Changes of request headers, last before the request leaves.
    RequestHeaders,
    /// Changes of response headers.
    ResponseHeaders,
    /// Compression of the response, last before it leaves.
    Compression,
}

/// The order of the chain. Cheap refusals come first, a login is asked only of whom the addresses
/// let in, and no module sees what a later one adds.
pub const ORDER: [Stage; 9] = [
    Stage::EdgeWide,
    Stage::IpRestriction,
    Stage::UserAgent,
    Stage::Webhook,
    Stage::Login,
    Stage::CircuitBreaker,
    Stage::RequestHeaders,
    Stage::ResponseHeaders,
    Stage::Compression,
];

/// Where a kind of module stands; absent for kinds that no chain holds yet.
#[must_use]
pub const fn stage(kind: ModuleKind) -> Option<Stage> {
    match kind {
        ModuleKind::TlsTermination | ModuleKind::MutualTls => Some(Stage::EdgeWide),
        ModuleKind::IpRestriction => Some(Stage::IpRestriction),
        ModuleKind::UserAgentFilter => Some(Stage::UserAgent),
        ModuleKind::WebhookVerification => Some(Stage::Webhook),
        ModuleKind::Oauth | ModuleKind::Oidc | ModuleKind::Saml => Some(Stage::Login),
        ModuleKind::CircuitBreaker => Some(Stage::CircuitBreaker),
        ModuleKind::RequestHeaders => Some(Stage::RequestHeaders),
        ModuleKind::ResponseHeaders => Some(Stage::ResponseHeaders),
        ModuleKind::Compression => Some(Stage::Compression),
        ModuleKind::TrafficPolicy | ModuleKind::WebsocketTcpConverter => None,
    }
}

/// The kinds of module that this code enforces. Whatever is not here never compiles to a chain.
#[must_use]
pub fn enforced() -> BTreeSet<ModuleKind> {
    ModuleKind::ALL
        .into_iter()
        .filter(|kind| is_enforced(*kind))
        .collect()
}

const fn is_enforced(kind: ModuleKind) -> bool {
    match kind {
        ModuleKind::TlsTermination
        | ModuleKind::IpRestriction
        | ModuleKind::RequestHeaders
        | ModuleKind::ResponseHeaders => true,
        ModuleKind::MutualTls
        | ModuleKind::UserAgentFilter
        | ModuleKind::WebhookVerification
        | ModuleKind::Oauth
        | ModuleKind::Oidc
        | ModuleKind::Saml
        | ModuleKind::TrafficPolicy
        | ModuleKind::CircuitBreaker
        | ModuleKind::WebsocketTcpConverter
        | ModuleKind::Compression => false,
    }
}

/// What the modules may know of a request.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'r> {
    /// The peer's address, in canonical form ([`Facts::new`] sees to it).
    client: IpAddr,
    /// The method.
    pub method: &'r str,
    /// The normalised host.
    pub host: &'r str,
    /// The normalised path.
    pub path: &'r str,
}

impl<'r> Facts<'r> {
    /// The facts of a request from `peer`, the address at the other end of the connection.
    #[must_use]
    pub const fn new(peer: IpAddr, method: &'r str, host: &'r str, path: &'r str) -> Self {
        Self {
            client: canonical(peer),
            method,
            host,
            path,
        }
    }

    /// The client's canonical address.
    #[must_use]
    pub const fn client(&self) -> IpAddr {
        self.client
    }
}

/// Why modules cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainProblem {
    /// A module of a kind that is not enforced.
    #[error("module {} is not enforced by this edge yet", .0.name())]
    NotEnforced(ModuleKind),
    /// A headers module that may not be.
    #[error("module {}: {problem}", .kind.name())]
    Headers {
        /// Of requests or of responses.
        kind: ModuleKind,
        /// What is wrong.
        problem: HeaderProblem,
    },
}

/// A route's modules, compiled, in order.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    access: Vec<Access>,
    request_headers: Option<HeaderEdits>,
    response_headers: Option<HeaderEdits>,
}

/// A module that can refuse.
#[derive(Clone, Debug)]
enum Access {
    IpRestriction(AddressSet),
}

impl Chain {
    /// Compiles modules. `also_refuse` are policies of which each alone must let an address pass,
    /// on top of the restriction (R17).
    ///
    /// # Errors
    /// The first module that cannot be enforced: the route must refuse (R10).
    pub fn compile(
        modules: &Modules<IpRules>,
        also_refuse: &[IpRules],
    ) -> Result<Self, ChainProblem> {
        let mut chain = Self::default();
        for stage in ORDER {
            chain.add(stage, modules, also_refuse)?;
        }
        Ok(chain)
    }

    fn add(
        &mut self,
        stage: Stage,
        modules: &Modules<IpRules>,
        also_refuse: &[IpRules],
    ) -> Result<(), ChainProblem> {
        let Modules {
            ip_restriction,
            user_agent_filter,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy,
            circuit_breaker,
            websocket_tcp_converter,
            request_headers,
            response_headers,
            compression,
        } = modules;
        match stage {
            Stage::EdgeWide => {
                // A traffic policy and a converter have no place in the order yet, and no stage
                // of their own to refuse them at.
                refuse(
                    ModuleKind::TrafficPolicy,
                    traffic_policy.as_ref().map(|m| m.enabled),
                )?;
                refuse(
                    ModuleKind::WebsocketTcpConverter,
                    websocket_tcp_converter.map(|m| m.enabled),
                )
            }
            Stage::IpRestriction => {
                if let Some(addresses) = admitted_addresses(ip_restriction.as_ref(), also_refuse) {
                    self.access.push(Access::IpRestriction(addresses));
                }
                Ok(())
            }
            Stage::UserAgent => refuse(
                ModuleKind::UserAgentFilter,
                user_agent_filter.as_ref().map(|m| m.enabled),
            ),
            Stage::Webhook => refuse(
                ModuleKind::WebhookVerification,
                webhook_verification.as_ref().map(|m| m.enabled),
            ),
            Stage::Login => {
                refuse(ModuleKind::Oauth, oauth.as_ref().map(|m| m.enabled))?;
                refuse(ModuleKind::Oidc, oidc.as_ref().map(|m| m.enabled))?;
                refuse(ModuleKind::Saml, saml.as_ref().map(|m| m.enabled))
            }
            Stage::CircuitBreaker => refuse(
                ModuleKind::CircuitBreaker,
                circuit_breaker.as_ref().map(|m| m.enabled),
            ),
            Stage::RequestHeaders => {
                self.request_headers = edits(Direction::Request, request_headers.as_ref())?;
                Ok(())
            }
            Stage::ResponseHeaders => {
                self.response_headers = edits(Direction::Response, response_headers.as_ref())?;
                Ok(())
            }
            Stage::Compression => refuse(ModuleKind::Compression, compression.map(|m| m.enabled)),
        }
    }

    /// Judges a request by every module that can refuse, in order.
    ///
    /// # Errors
    /// The reason of the first module that refuses.
    pub fn judge(&self, facts: &Facts<'_>) -> Result<(), Refusal> {
        for module in &self.access {
            match module {
                Access::IpRestriction(addresses) => {
                    if !addresses.contains(facts.client()) {
                        return Err(Refusal::AddressRefused);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a decision depends on the method, so that method overrides must not reach a
    /// backend (R16).
    #[must_use]
    pub fn method_decides(&self) -> bool {
        self.access.iter().any(|module| match module {
            Access::IpRestriction(_) => false,
        })
    }

    /// What is done to request headers, last of all.
    #[must_use]
    pub const fn request_headers(&self) -> Option<&HeaderEdits> {
        self.request_headers.as_ref()
    }

    /// What is done to response headers.
    #[must_use]
    pub const fn response_headers(&self) -> Option<&HeaderEdits> {
        self.response_headers.as_ref()
    }
}

/// An error for a module that is applied but not enforced. Disabled, it does nothing, and there
/// is nothing to enforce.
fn refuse(kind: ModuleKind, enabled: Option<bool>) -> Result<(), ChainProblem> {
    match enabled {
        None | Some(false) => Ok(()),
        Some(true) => Err(ChainProblem::NotEnforced(kind)),
    }
}

/// The addresses that the restriction and each further policy let pass; absent: no condition.
fn admitted_addresses(
    restriction: Option<&IpRestriction<IpRules>>,
    also_refuse: &[IpRules],
) -> Option<AddressSet> {
    let restriction = restriction
        .filter(
            |IpRestriction {
                 enabled,
                 policies: _,
             }| *enabled,
        )
        .map(
            |IpRestriction {
                 enabled: _,
                 policies,
             }| AddressSet::admitted_by(policies),
        );
    let further = also_refuse
        .iter()
        .map(|rules| AddressSet::admitted_by(std::slice::from_ref(rules)));
    restriction
        .into_iter()
        .chain(further)
        .reduce(|all, one| all.intersection(&one))
}

fn edits(
    direction: Direction,
    changes: Option<&HeaderChanges>,
) -> Result<Option<HeaderEdits>, ChainProblem> {
    let kind = match direction {
        Direction::Request => ModuleKind::RequestHeaders,
        Direction::Response => ModuleKind::ResponseHeaders,
    };
    changes
        .filter(|changes| changes.enabled)
        .map(|changes| HeaderEdits::compile(direction, changes))
        .transpose()
        .map_err(|problem| ChainProblem::Headers { kind, problem })
}

#[cfg(test)]
mod tests;
