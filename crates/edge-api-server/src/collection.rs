//! What all collections of plain things have in common: listing, showing, changing what is said
//! about a thing, deleting. Each says only what is its own.

use std::fmt::Display;

use axum::{Router, extract::Path, handler::Handler, routing::get as on_get};
use edge_api::{error::ApiError, json::Members, list::Resource};
use edge_state::{command::Command, state::EdgeState};
use edge_store::Published;
use model::id::NotAnId;

use crate::{
    Api,
    answer::{Answer, Failure, Outcome},
    call::Call,
    page,
};

/// Ids in ascending order.
pub(crate) type Ids<'s, K> = Box<dyn DoubleEndedIterator<Item = &'s K> + 's>;

/// A collection of things `T` by ids `K`: what differs from one to the next.
pub(crate) struct Collection<K: 'static, T> {
    pub(crate) parse: fn(&str) -> Result<K, NotAnId>,
    pub(crate) ids: for<'s> fn(&'s EdgeState) -> Ids<'s, K>,
    /// A thing on the wire, with addresses that begin like this text.
    pub(crate) find: fn(&str, &EdgeState, &K) -> Option<T>,
    /// What a PATCH asks for. It needs no look at what the thing was.
    pub(crate) update: fn(K, Members) -> Result<Command, ApiError>,
    pub(crate) delete: fn(K) -> Command,
}

impl<K, T> Collection<K, T>
where
    K: Clone + Ord + Display + Into<String> + Send + Sync,
    T: Resource + Send,
{
    fn show(&self, call: &Call, published: &Published, id: &K) -> Result<T, Failure> {
        (self.find)(&call.base, &published.state, id).ok_or_else(|| ApiError::not_found().into())
    }

    /// Carries out a command about one thing, in its turn, and shows the thing as it is then.
    pub(crate) async fn write(&self, call: &Call, id: &K, command: Command) -> Result<T, Failure> {
        let _turn = call.turn().await;
        let applied = call.apply(command).await?;
        self.show(call, &applied.published, id)
    }

    /// The answer to a call that makes a thing.
    pub(crate) async fn make(&self, call: &Call, id: K, command: Command) -> Outcome {
        let shown = self.write(call, &id, command).await?;
        Ok(Answer::created(&shown)?.about(id))
    }

    async fn list(&self, call: Call) -> Outcome {
        let published = call.state();
        let items = (self.ids)(&published.state).map(|id| (id, ()));
        page::answer(&call, self.parse, items, |id, ()| {
            (self.find)(&call.base, &published.state, id)
        })
    }

    async fn get(&self, id: &str, call: Call) -> Outcome {
        call.no_parameters()?;
        let id = page::id(id, self.parse)?;
        Answer::ok(&self.show(&call, &call.state(), &id)?)
    }

    async fn update(&self, id: &str, call: Call) -> Outcome {
        let id = page::id(id, self.parse)?;
        let command = (self.update)(id.clone(), call.members()?)?;
        let shown = self.write(&call, &id, command).await?;
        Ok(Answer::ok(&shown)?.about(id))
    }

    async fn delete(&self, id: &str, call: Call) -> Outcome {
        call.no_parameters()?;
        let id = page::id(id, self.parse)?;
        let _turn = call.turn().await;
        call.apply((self.delete)(id.clone())).await?;
        Ok(Answer::done().about(id))
    }

    /// Paths and verbs; what a POST makes is each collection's own.
    pub(crate) fn router<A: 'static>(&'static self, create: impl Handler<A, Api>) -> Router<Api> {
        let one =
            on_get(move |Path(id): Path<String>, call| async move { self.get(&id, call).await })
                .patch(
                    move |Path(id): Path<String>, call| async move { self.update(&id, call).await },
                )
                .delete(
                    move |Path(id): Path<String>, call| async move { self.delete(&id, call).await },
                );
        Router::new()
            .route(T::PATH, on_get(move |call| self.list(call)).post(create))
            .route(&format!("{}/{{id}}", T::PATH), one)
    }
}
