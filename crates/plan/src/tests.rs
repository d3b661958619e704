//! How the planner is proven: a small universe completely, large ones at random, planners that
//! are broken on purpose, and single cases by name.

mod cases;
mod fixture;
mod kept;
mod large;
mod mutants;
mod random;
mod scene;
mod universe;
mod walk;
