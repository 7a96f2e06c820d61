//! What the shipped catalogue promises.

use std::collections::BTreeSet;
use std::path::Path;

use sightline_model::{MetricKind, Unit};

use super::{Catalogue, Resolution};

fn catalogue() -> Catalogue {
    Catalogue::builtin().unwrap_or_else(|error| panic!("{error}"))
}

/// The id that words resolve to, or what stands in the way.
fn resolved(catalogue: &Catalogue, words: &str) -> String {
    match catalogue.resolve(words) {
        Resolution::Exact(metric) => metric.id().to_owned(),
        Resolution::Ambiguous(meant) => format!("ambiguous: {:?}", meant.iter().map(|m| m.id()).collect::<Vec<_>>()),
        Resolution::Unknown { near } => format!("unknown: {near:?}"),
    }
}

#[test]
fn at_least_150_metrics_are_known() {
    assert!(catalogue().metrics().count() >= 150);
}

/// Old and new names of DCGM 4.6, with the numeric field both stand for.
const RENAMED: [(u16, &str, &str); 62] = [
    (64, "DCGM_FI_DEV_P2P_NVLINK_STATUS", "DCGM_FI_DEV_NVLINK_P2P_STATUS"),
    (112, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"),
    (140, "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS"),
    (150, "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"),
    (151, "DCGM_FI_DEV_MEM_MAX_OP_TEMP", "DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS"),
    (152, "DCGM_FI_DEV_GPU_MAX_OP_TEMP", "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS"),
    (153, "DCGM_FI_DEV_GPU_TEMP_LIMIT", "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS"),
    (155, "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS"),
    (157, "DCGM_FI_DEV_POWER_USAGE_INSTANT", "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS"),
    (158, "DCGM_FI_DEV_SLOWDOWN_TEMP", "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS"),
    (159, "DCGM_FI_DEV_SHUTDOWN_TEMP", "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS"),
    (160, "DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS"),
    (161, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS"),
    (162, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS"),
    (163, "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS"),
    (164, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS"),
    (190, "DCGM_FI_DEV_PSTATE", "DCGM_FI_DEV_GPU_PSTATE"),
    (202, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL"),
    (203, "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO"),
    (230, "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR"),
    (254, "DCGM_FI_DEV_FB_USED_PERCENT", "DCGM_FI_DEV_FB_USED_RATIO"),
    (300, "DCGM_FI_DEV_ECC_CURRENT", "DCGM_FI_DEV_ECC_MODE"),
    (346, "DCGM_FI_DEV_THRESHOLD_SRM", "DCGM_FI_DEV_SRAM_EXCEEDED"),
    (385, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"),
    (389, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE"),
    (390, "DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL"),
    (391, "DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL"),
    (392, "DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING"),
    (393, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL"),
    (394, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL"),
    (395, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED"),
    (409, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL"),
    (419, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL"),
    (429, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL"),
    (439, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL"),
    (440, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0", "DCGM_FI_DEV_NVLINK_THROUGHPUT_L0"),
    (449, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"),
    (784, "DCGM_FI_DEV_NVSWITCH_LINK_REPLAY_ERRORS", "DCGM_FI_DEV_NVSWITCH_LINK_REPLAY_ERROR_TOTAL"),
    (787, "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERRORS", "DCGM_FI_DEV_NVSWITCH_LINK_CRC_ERROR_TOTAL"),
    (843, "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_TOTAL"),
    (856, "DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS", "DCGM_FI_DEV_SXID_FATAL_ERROR"),
    (857, "DCGM_FI_DEV_NVSWITCH_NON_FATAL_ERRORS", "DCGM_FI_DEV_SXID_NON_FATAL_ERROR"),
    (858, "DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT", "DCGM_FI_DEV_NVSWITCH_TEMP_CELSIUS"),
    (897, "DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_TOTAL"),
    (1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    (1002, "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"),
    (1003, "DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO"),
    (1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO"),
    (1005, "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO"),
    (1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"),
    (1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"),
    (1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"),
    (1013, "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", "DCGM_FI_PROF_IMMA_UTIL_RATIO"),
    (1014, "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", "DCGM_FI_PROF_HMMA_UTIL_RATIO"),
    (1015, "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", "DCGM_FI_PROF_DFMA_UTIL_RATIO"),
    (1016, "DCGM_FI_PROF_PIPE_INT_ACTIVE", "DCGM_FI_PROF_INT_UTIL_RATIO"),
    (1110, "DCGM_FI_DEV_CPU_TEMP_CURRENT", "DCGM_FI_DEV_CPU_TEMP_CELSIUS"),
    (1201, "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", "DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL"),
    (1206, "DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", "DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL"),
    (1220, "DCGM_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_ECC_ERROR_TOTAL"),
    (1507, "DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", "DCGM_FI_DEV_MEMORY_UNREPAIRABLE"),
    (1523, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION"),
];

#[test]
fn old_and_new_dcgm_names_are_one_metric_tied_by_field_id() {
    let catalogue = catalogue();
    for (field, old, new) in RENAMED {
        let metric = catalogue.by_stored(old).unwrap_or_else(|| panic!("{old} is not known"));
        assert_eq!(catalogue.by_stored(new).map(|m| m.id()), Some(metric.id()), "{old} and {new}");
        assert_eq!(metric.dcgm_field(), Some(field), "{old}");
    }
}

#[test]
fn old_and_new_vllm_names_are_one_metric() {
    let catalogue = catalogue();
    let pairs = [
        ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"),
        ("vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"),
        ("vllm:gpu_prefix_cache_hits_total", "vllm:prefix_cache_hits"),
        ("vllm:num_requests_waiting", "vllm_num_requests_waiting"),
    ];
    for (old, new) in pairs {
        let old_id = catalogue.by_stored(old).map(|m| m.id());
        assert!(old_id.is_some(), "{old}");
        assert_eq!(old_id, catalogue.by_stored(new).map(|m| m.id()), "{old} and {new}");
    }
}

#[test]
fn everyday_words_resolve() {
    let catalogue = catalogue();
    let said = [
        ("how hot", "gpu_temperature"),
        ("Temperature", "gpu_temperature"),
        ("VRAM", "gpu_memory_used"),
        ("gpu memory", "gpu_memory_used"),
        ("tok/s", "training_throughput_tokens"),
        ("throughput", "training_throughput_tokens"),
        ("step time", "step_time"),
        ("SM-clock", "sm_clock"),
        ("power draw", "gpu_power"),
        ("gpu_util", "gpu_utilization"),
        ("gpu_temp", "gpu_temperature"),
        ("tensor cores", "tensor_active"),
        ("TTFT", "time_to_first_token"),
        ("queue length", "requests_waiting"),
        ("kv cache", "kv_cache_usage"),
        ("data loading", "data_loading_time"),
        ("loss", "training_loss"),
        ("MFU", "mfu"),
        ("checkpoint time", "checkpoint_save_time"),
        ("xid errors", "xid_last"),
        ("packet loss", "network_receive_drops"),
        ("disk full", "filesystem_available"),
        ("availability", "service_availability"),
        ("p99 latency", "service_latency_p99"),
    ];
    for (words, id) in said {
        assert_eq!(resolved(&catalogue, words), id, "{words}");
    }
}

#[test]
fn stored_names_and_ids_resolve_in_any_case() {
    let catalogue = catalogue();
    for name in [
        "DCGM_FI_DEV_GPU_TEMP",
        "dcgm_fi_dev_gpu_temp_celsius",
        "gpu_temperature",
        "GPU temperature",
        " gpu-temperature ",
    ] {
        assert_eq!(resolved(&catalogue, name), "gpu_temperature", "{name}");
    }
}

#[test]
fn the_series_of_a_histogram_belong_to_it_and_those_of_nothing_else_do() {
    let catalogue = catalogue();
    for part in ["", "_bucket", "_sum", "_count"] {
        let name = format!("vllm:time_to_first_token_seconds{part}");
        assert_eq!(catalogue.by_stored(&name).map(|m| m.id()), Some("time_to_first_token"), "{name}");
    }
    assert_eq!(catalogue.by_stored("DCGM_FI_DEV_GPU_TEMP_bucket"), None);
    assert_eq!(catalogue.by_stored("tgi_request_count").map(|m| m.id()), Some("tgi_requests"));
}

#[test]
fn no_everyday_word_is_ambiguous() {
    assert_eq!(catalogue().ambiguous_words(), std::collections::BTreeMap::new());
}

#[test]
fn typos_get_a_hint_and_nonsense_gets_none() {
    let catalogue = catalogue();
    let typed = [
        ("gpu_temprature", vec!["gpu_temperature"]),
        ("DCGM_FI_DEV_GPU_TMEP", vec!["DCGM_FI_DEV_GPU_TEMP"]),
        ("vllm:num_requests_wating", vec!["vllm:num_requests_waiting"]),
        ("tensr cores", vec!["tensor cores"]),
        ("qqqqqqqqqqqq", vec![]),
        ("", vec![]),
    ];
    for (words, expected) in typed {
        let Resolution::Unknown { near } = catalogue.resolve(words) else { panic!("{words} is known") };
        let first: Vec<&str> = near.iter().map(String::as_str).take(1).collect();
        assert_eq!(first, expected, "{words}: {near:?}");
        assert!(near.len() <= 3);
    }
}

#[test]
fn a_long_hostile_name_is_unknown_without_a_hint() {
    assert_eq!(catalogue().resolve(&"x".repeat(1_000_000)), Resolution::Unknown { near: vec![] });
}

#[test]
fn rates_that_exporters_type_as_counters_are_gauges_here() {
    let catalogue = catalogue();
    for name in [
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
        "DCGM_EXP_CLOCK_EVENTS_COUNT",
    ] {
        assert_eq!(catalogue.by_stored(name).map(|m| m.kind()), Some(MetricKind::Gauge), "{name}");
    }
}

#[test]
fn units_that_names_lie_about_are_right() {
    let catalogue = catalogue();
    let facts = [
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", Unit::Percent),
        ("DCGM_FI_DEV_FB_USED_PERCENT", Unit::Ratio),
        ("DCGM_FI_DEV_FB_USED", Unit::Mebibytes),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Unit::Millijoules),
        ("vllm:kv_cache_usage_perc", Unit::Ratio),
        ("mfu(%)", Unit::Percent),
    ];
    for (name, unit) in facts {
        assert_eq!(catalogue.by_stored(name).map(|m| m.unit()), Some(unit), "{name}");
    }
}

#[test]
fn the_metrics_of_the_recorded_web_shop_are_known() {
    let catalogue = catalogue();
    for quantile in ["avg", "p50", "p90", "p95", "p99"] {
        let name = format!("service_latency_{quantile}_seconds");
        assert_eq!(catalogue.by_stored(&name).map(|m| m.unit()), Some(Unit::Seconds), "{name}");
    }
    // A sum per interval: a gauge, although it counts requests.
    assert_eq!(catalogue.by_stored("service_requests").map(|m| m.kind()), Some(MetricKind::Gauge));
    assert_eq!(catalogue.by_stored("service_availability_percent").map(|m| m.unit()), Some(Unit::Percent));
    assert_eq!(catalogue.by_stored("service_graph_edge").map(|m| m.kind()), Some(MetricKind::State));
}

#[test]
fn the_same_quantity_in_another_unit_is_found() {
    let catalogue = catalogue();
    let ids: Vec<&str> = catalogue.variants("mfu").map(|m| m.id()).collect();
    assert_eq!(ids, ["mfu_percent"]);
}

#[test]
fn what_the_exporter_leaves_out_by_default_says_so() {
    let catalogue = catalogue();
    let metric = catalogue.get("thermal_violation").unwrap();
    assert_eq!(metric.collection(), Some("commented out by default in dcgm-exporter"));
    assert_eq!(catalogue.get("gpu_temperature").unwrap().collection(), None);
}

#[test]
fn names_kinds_and_units_of_all_metrics() {
    let table: Vec<String> = catalogue()
        .metrics()
        .map(|m| {
            let stored: Vec<&str> = m.stored().collect();
            let field = m.dcgm_field().map_or(String::new(), |field| format!(" #{field}"));
            let (kind, unit, entity) = (m.kind().as_str(), m.unit().as_str(), m.entity().as_str());
            format!("{}{field} | {kind} | {unit} | {entity} | {}", m.id(), stored.join(", "))
        })
        .collect();
    insta::assert_snapshot!("metrics", table.join("\n"));
}

#[test]
fn every_metric_of_the_recorded_scrapes_is_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/scrapes");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: no recorded scrapes at {}", folder.display());
        return;
    };
    let catalogue = catalogue();
    let mut seen = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "prom") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let name = line.split(['{', ' ']).next().unwrap().to_owned();
            if catalogue.by_stored(&name).is_none() {
                unknown.insert(name.clone());
            }
            seen.insert(name);
        }
    }
    assert!(!seen.is_empty(), "the scrapes hold no samples");
    assert_eq!(unknown, BTreeSet::new());
}
