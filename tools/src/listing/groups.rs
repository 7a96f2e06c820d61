//! Rows by group: how many there are of each, and the first of each.

use std::collections::BTreeMap;

use sightline_model::{Dim, Entity, EvidenceRow};

use crate::list_rows::text_of;
use crate::reading::{Ranked, entity_key};

/// Lines that begin alike are counted as one: so much of a line tells what it is about, the rest is numbers and names.
const HEAD_CHARACTERS: usize = 200;

/// Counts as rows; with their share of the whole where the whole is known.
pub(super) fn counted(ranked: &[Ranked], whole: Option<u64>) -> Vec<EvidenceRow> {
    ranked
        .iter()
        .zip(1..)
        .map(|(r, rank)| EvidenceRow {
            entity: r.entity.clone(),
            value: Some(r.value),
            rank: whole.map(|_| rank),
            fields: whole
                .filter(|whole| *whole > 0)
                .map(|whole| ("share".to_owned(), (r.value / whole as f64).to_string()))
                .into_iter()
                .collect(),
            ..EvidenceRow::default()
        })
        .collect()
}

/// Counts by body, added up over bodies that begin alike.
pub(super) fn merge_heads(ranked: Vec<Ranked>) -> Vec<Ranked> {
    let mut merged: BTreeMap<Entity, Ranked> = BTreeMap::new();
    for mut group in ranked {
        if let Some(body) = group.entity.get_mut("body") {
            *body = body.chars().take(HEAD_CHARACTERS).collect();
        }
        match merged.get_mut(&group.entity) {
            Some(there) => {
                there.value += group.value;
                there.count += group.count;
            }
            None => {
                merged.insert(group.entity.clone(), group);
            }
        }
    }
    merged.into_values().collect()
}

/// The first rows of each group, with their place in it, in the order the rows came.
pub(super) fn first_of_each(rows: Vec<EvidenceRow>, per: &[Dim], limit: u32) -> Vec<EvidenceRow> {
    let mut seen: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    rows.into_iter()
        .filter_map(|row| {
            let key = per.iter().map(|dim| text_of(&row, entity_key(dim)).to_owned()).collect();
            let place = seen.entry(key).or_default();
            *place += 1;
            (*place <= u64::from(limit)).then_some(EvidenceRow { rank: Some(*place), ..row })
        })
        .collect()
}
