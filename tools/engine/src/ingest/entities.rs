//! Which tenant, cluster, node, GPU and service a row's labels name.

use sightline_model::rows::Labels;
use sightline_query::catalogue::LabelAliases;

/// The tenant and the cluster of rows that name none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant.
    pub tenant: String,
    /// The cluster.
    pub cluster: String,
}

/// Who put the labels of a row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A scraper, which adds labels of its own, such as `job`.
    Scraped,
    /// The writer of the record.
    Written,
}

/// The entity columns of a row, and its labels with canonical names added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entities {
    pub(super) tenant: String,
    pub(super) cluster: String,
    pub(super) node: String,
    pub(super) gpu: String,
    pub(super) service: String,
    pub(super) pod: String,
    pub(super) labels: Labels,
}

/// Reads the labels of one row. Tenant and cluster leave the labels: they are columns of every table.
pub(super) fn entities(aliases: &LabelAliases, defaults: &Scope, stored: &Labels, origin: Origin) -> Entities {
    let mut labels = match origin {
        Origin::Scraped => aliases.canonicalise(stored),
        Origin::Written => aliases.canonicalise_written(stored),
    };
    let mut scope = |key: &str, default: &str| {
        labels.remove(key).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
    };
    let tenant = scope("tenant", &defaults.tenant);
    let cluster = scope("cluster", &defaults.cluster);
    let of = |key: &str| labels.get(key).cloned().unwrap_or_default();
    Entities { tenant, cluster, node: of("node"), gpu: of("gpu"), service: of("service"), pod: of("pod"), labels }
}

#[cfg(test)]
mod tests {
    use sightline_model::rows::Labels;
    use sightline_query::catalogue::LabelAliases;

    use super::{Entities, Origin, Scope, entities};

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn read(pairs: &[(&str, &str)], origin: Origin) -> Entities {
        let defaults = Scope { tenant: "default".to_owned(), cluster: "west".to_owned() };
        entities(&LabelAliases::builtin().unwrap(), &defaults, &labels(pairs), origin)
    }

    #[test]
    fn labels_as_scraped_fill_the_columns_and_keep_their_own_names() {
        let row = read(
            &[("tenant", "atlas"), ("Hostname", "n07"), ("gpu", "3"), ("UUID", "GPU-1"), ("job", "dcgm")],
            Origin::Scraped,
        );
        let expected = Entities {
            tenant: "atlas".to_owned(),
            cluster: "west".to_owned(),
            node: "n07".to_owned(),
            gpu: "3".to_owned(),
            service: String::new(),
            pod: String::new(),
            labels: labels(&[
                ("Hostname", "n07"),
                ("UUID", "GPU-1"),
                ("gpu", "3"),
                ("gpu_uuid", "GPU-1"),
                ("node", "n07"),
                ("scraped_job", "dcgm"),
            ]),
        };
        assert_eq!(row, expected);
    }

    #[test]
    fn a_job_in_a_written_record_is_a_job() {
        let row = read(&[("job", "J123"), ("instance", "n07:9400")], Origin::Written);
        assert_eq!(row.labels, labels(&[("instance", "n07:9400"), ("job", "J123"), ("node", "n07")]));
        assert_eq!((row.tenant.as_str(), row.node.as_str()), ("default", "n07"));
    }

    #[test]
    fn an_empty_tenant_is_none() {
        assert_eq!(read(&[("tenant", "")], Origin::Scraped).tenant, "default");
    }
}
