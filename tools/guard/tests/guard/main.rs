//! The guard as others use it: from a query of a tool to checked text, and the checker on text from outside.

#[cfg(test)]
mod accepted;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod clauses;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod grafts;
#[cfg(test)]
mod kept;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod own;
#[cfg(test)]
mod predicates;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod spelling;
#[cfg(test)]
mod texts;
