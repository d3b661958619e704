//! Deliberate faults of the planner, for the tests that show that the checker would notice. Not
//! part of any build but the tests'.

/// A way to plan wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// None: the planner as it is.
    None,
    /// Module after module on the open route, as the upstream controller does (R4).
    ModulesOnOpenRoute,
    /// A withdrawn route is deleted although its broader neighbour is not ready (R5).
    DeleteEarly,
    /// A withdrawn host is deleted although the wildcard is not ready (R5).
    DeleteHostEarly,
    /// A route that cannot open is left out instead of staged (R3).
    SkipInsteadOfStage,
    /// A wildcard opens before the hosts below it stand (R3).
    WildcardFirst,
    /// A held route moves to the new content of the policy that it shares (R17).
    SharedPolicyInPlace,
    /// No tombstone: a withdrawn protected route goes at once (R5).
    NoTombstone,
    /// Routes open before the edge-wide demands are in force (R13).
    OpenBeforeDemands,
    /// Edge-wide demands change under a held route (R13).
    DemandsUnderHeld,
    /// A removed route stays open while its neighbour is held (R5).
    LeaveWithdrawnOpen,
}
