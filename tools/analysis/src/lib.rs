//! Numerics over measured series: robust statistics, change points, peers, trends, counters, histograms, coverage.
//!
//! This crate takes slices and returns small structs. It knows no metric names and no causes, opens nothing, reads no
//! clock and draws no random numbers: what is resampled is resampled by a generator seeded from the data's length. A sample that is missing is absent from its series (or `None` in a grid): it is
//! never read as zero, and values that are not finite are skipped.
//!
//! ```
//! use sightline_analysis::{ChangeOptions, Sample, change_points};
//! let series: Vec<Sample> = (0..40).map(|i| Sample::at_second(i * 30, if i < 25 { 1.0 } else { 1.6 })).collect();
//! let found = change_points(&series, &ChangeOptions::default());
//! assert_eq!(found.iter().map(|c| (c.index, c.before, c.after)).collect::<Vec<_>>(), vec![(25, 1.0, 1.6)]);
//! ```

mod absence;
mod change;
mod cohort;
mod correlation;
mod counter;
mod coverage;
mod dips;
mod flat;
mod grid;
mod histogram;
mod normal;
mod peers;
mod period;
mod persistence;
mod random;
mod rank_test;
mod robust;
mod sample;
mod season;
mod skew;
mod templates;
mod trend;
mod twins;

pub use absence::{Absence, absences};
pub use change::{ChangeOptions, ChangePoint, Direction, change_points, lasting_change};
pub use cohort::{CohortTest, MIN_COHORT, benjamini_hochberg, cohort_test, holm};
pub use correlation::{LaggedCorrelation, lagged_correlation};
pub use counter::{Increase, increase, rates};
pub use coverage::{Coverage, Gap, coverage, typical_step};
pub use dips::{Dips, common_dips};
pub use flat::{ConstantRun, longest_constant_run};
pub use grid::{Grid, ratio_to_peers};
pub use histogram::{Bucket, histogram_quantile};
pub use normal::two_sided_p;
pub use peers::{Better, PeerScore, peer_scores};
pub use period::{Period, period};
pub use persistence::{Persistence, persistence};
pub use rank_test::{RankTest, mann_whitney};
pub use robust::{Summary, mad, mean, median, quantile, robust_scale};
pub use sample::{Sample, between, values};
pub use season::{Season, season};
pub use skew::{Skew, clock_skews};
pub use templates::{GAP, TemplateMiner, TemplateOptions};
pub use trend::{Forecast, Trend, theil_sen};
pub use twins::twins;
