//! Sentences about signals of a service.

use sightline_model::{DraftClaim, Entity, Quantity, Relation, Stat, TimeRange};

use crate::sentence::Sentence;
use crate::serving::case::Case;
use crate::serving::change::Change;
use crate::serving::track::Track;

/// "On pod {pod}, " for a replica; nothing for the service.
fn on(entity: &Entity) -> &'static str {
    match (entity.contains_key("pod"), entity.contains_key("engine"), entity.contains_key("node")) {
        (true, true, _) => "on engine {engine} of pod {pod} ",
        (true, false, _) => "on pod {pod} ",
        (false, true, true) => "on engine {engine} of node {node} ",
        (false, true, false) => "on engine {engine} ",
        (false, false, true) => "on node {node} ",
        (false, false, false) => "",
    }
}

/// A change: "the request rate rose from … to …, by … % at …".
pub(crate) fn changed(change: &Change<'_>) -> Sentence {
    let rose = change.after > change.before;
    let (verb, relation) = if rose { ("rose", Relation::Above) } else { ("fell", Relation::Below) };
    let since = if change.onset.is_some() { " at {onset}" } else { "" };
    let by = if change.before > 0.0 { ", by {change}" } else { "" };
    let (words, place) = (change.signal.words(), on(change.entity));
    let text = format!("The {words} {place}{verb} from {{before}} to {{after}}{by}{since}.");
    let (before, after) = (change.before_fact.clone(), change.after_fact.clone());
    let (decimals, unit) = (change.signal.decimals(), change.evidence.unit);
    let mut sentence = Sentence::new(&text)
        .entity(change.evidence, change.entity)
        .number("before", before.clone(), decimals, unit)
        .number("after", after.clone(), decimals, unit)
        .holds(after.clone(), relation, before.clone());
    if change.before > 0.0 {
        sentence = sentence.percent("change", before, after);
    }
    if let Some(onset) = &change.onset {
        sentence = sentence.instant("onset", onset.evidence, onset.entity, onset.at);
    }
    sentence
}

/// The replicas that went away, so that the others take their requests.
pub(crate) fn gone(case: &Case<'_>) -> Vec<DraftClaim> {
    let went = |track: &&Track<'_>| {
        let text = format!("Fewer replicas take the requests: the last sample {}was at {{last}}.", on(track.entity));
        Sentence::new(&text)
            .entity(track.evidence, track.entity)
            .last_seen("last", track.evidence, track.entity)
            .claim()
    };
    case.gone().iter().map(went).collect()
}

/// A level: "the KV cache usage was … at the median".
pub(crate) fn level(track: &Track<'_>, range: TimeRange) -> Sentence {
    let text = format!("The {} {}was {{level}} at the median.", track.signal.words(), on(track.entity));
    Sentence::new(&text).entity(track.evidence, track.entity).number(
        "level",
        track.fact(Stat::Median, range),
        track.signal.decimals(),
        track.evidence.unit,
    )
}

/// A level that stays below or above a bound, in words that name no number.
pub(crate) fn bounded(
    track: &Track<'_>,
    range: TimeRange,
    relation: Relation,
    bound: f64,
    meaning: &str,
) -> DraftClaim {
    let fact = track.fact(Stat::Median, range);
    let text = format!("The {} {}was {{level}} at the median: {meaning}.", track.signal.words(), on(track.entity));
    Sentence::new(&text)
        .entity(track.evidence, track.entity)
        .number("level", fact.clone(), track.signal.decimals(), track.evidence.unit)
        .holds(fact, relation, Quantity::Constant(bound))
        .claim()
}
