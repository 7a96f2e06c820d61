//! The measurements a diagnosis looks at, by the catalogue's names.

/// What a signal is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One series per GPU.
    Gpu,
    /// One or more series per node.
    Node,
    /// One series per job, or one per rank.
    Job,
}

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $scope:ident, $words:literal, [$($metric:literal),+];)*) => {
        /// A measurement that some cause looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Signal {
            $($(#[$doc])* $name,)*
        }

        impl Signal {
            /// Every signal, in the order in which a tool that must save queries should fetch them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What it is measured on.
            pub fn scope(self) -> Scope {
                match self { $(Self::$name => Scope::$scope,)* }
            }

            /// What it is called in a sentence; without digits.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// The catalogue's metrics that carry it; the first one with samples is used.
            pub fn metrics(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($metric),+],)* }
            }
        }
    };
}

signals! {
    /// Seconds (or milliseconds) per training step.
    StepTime = Job, "step time", ["step_time"];
    /// Work done per second by the job.
    Throughput = Job, "throughput", ["training_throughput_tokens", "training_throughput_tokens_per_gpu", "training_throughput_samples"];
    /// Time per step spent waiting for input.
    DataLoading = Job, "data loading time", ["data_loading_time"];
    /// Time taken by a checkpoint.
    CheckpointTime = Job, "checkpoint time", ["checkpoint_save_time"];
    /// Time per step spent waiting for or in communication.
    CommunicationTime = Job, "communication time", ["nccl_wait_time", "gradient_sync_time"];
    /// Time per step spent computing.
    ComputeTime = Job, "compute time", ["forward_backward_time", "forward_time"];
    /// SM clock.
    SmClock = Gpu, "SM clock", ["sm_clock"];
    /// Die temperature.
    GpuTemperature = Gpu, "GPU temperature", ["gpu_temperature"];
    /// Power draw.
    Power = Gpu, "power draw", ["gpu_power"];
    /// Share of time with a kernel running.
    Utilization = Gpu, "GPU utilisation", ["gpu_utilization"];
    /// Bit mask of reasons for a lowered clock.
    ClockReasons = Gpu, "clock event reasons", ["clock_event_reasons"];
    /// Share of cycles with the tensor pipes busy.
    TensorActive = Gpu, "tensor activity", ["tensor_active"];
    /// Share of cycles in which an SM had work.
    SmActive = Gpu, "SM activity", ["sm_active"];
    /// Share of cycles in which memory was read or written.
    DramActive = Gpu, "memory activity", ["dram_active"];
    /// Memory temperature.
    MemoryTemperature = Gpu, "GPU memory temperature", ["gpu_memory_temperature"];
    /// The limit the board enforces.
    PowerLimit = Gpu, "enforced power limit", ["gpu_power_limit_enforced"];
    /// Time lost to thermal limits.
    ThermalViolation = Gpu, "time under thermal limits", ["thermal_violation"];
    /// Time lost to power limits.
    PowerViolation = Gpu, "time under power limits", ["power_violation"];
    /// GPU memory in use.
    MemoryUsed = Gpu, "GPU memory in use", ["gpu_memory_used"];
    /// The last Xid code.
    LastXid = Gpu, "last Xid", ["xid_last"];
    /// Rows remapped after uncorrectable errors.
    RemappedUncorrectable = Gpu, "rows remapped after uncorrectable errors", ["row_remap_uncorrectable"];
    /// Rows remapped after correctable errors.
    RemappedCorrectable = Gpu, "rows remapped after correctable errors", ["row_remap_correctable"];
    /// Whether a remap failed.
    RemapFailed = Gpu, "row remap failure", ["row_remap_failed"];
    /// Double-bit errors.
    DoubleBitErrors = Gpu, "double-bit errors", ["ecc_dbe_volatile"];
    /// PCIe lanes in use.
    PcieWidth = Gpu, "PCIe link width", ["pcie_link_width"];
    /// PCIe replays.
    PcieReplays = Gpu, "PCIe replays", ["pcie_replays"];
    /// NVLink CRC errors on flits.
    NvlinkCrcFlit = Gpu, "NVLink flit CRC errors", ["nvlink_crc_flit_errors"];
    /// NVLink CRC errors on data.
    NvlinkCrcData = Gpu, "NVLink data CRC errors", ["nvlink_crc_data_errors"];
    /// NVLink replays.
    NvlinkReplay = Gpu, "NVLink replay errors", ["nvlink_replay_errors"];
    /// NVLink recoveries.
    NvlinkRecovery = Gpu, "NVLink recovery errors", ["nvlink_recovery_errors"];
    /// InfiniBand receive errors.
    IbReceiveErrors = Node, "InfiniBand receive errors", ["ib_receive_errors"];
    /// InfiniBand symbol errors.
    IbSymbolErrors = Node, "InfiniBand symbol errors", ["ib_symbol_errors"];
    /// InfiniBand links lost.
    IbLinkDowned = Node, "lost InfiniBand links", ["ib_link_downed"];
    /// InfiniBand links retrained.
    IbLinkRecovery = Node, "InfiniBand link recoveries", ["ib_link_error_recovery"];
    /// InfiniBand port rate.
    IbPortRate = Node, "InfiniBand port rate", ["ib_port_rate"];
    /// InfiniBand time waiting to send.
    IbTransmitWait = Node, "InfiniBand transmit wait", ["ib_transmit_wait"];
    /// RDMA packets marked by congested switches.
    CongestionMarks = Node, "congestion marks on RDMA packets", ["rdma_ecn_marked"];
    /// Pause frames received.
    PauseFrames = Node, "received pause frames", ["pfc_pause_received"];
    /// Ethernet receive errors.
    NicReceiveErrors = Node, "network receive errors", ["network_receive_errors"];
    /// Ethernet transmit errors.
    NicTransmitErrors = Node, "network transmit errors", ["network_transmit_errors"];
    /// Ethernet link losses.
    NicCarrierChanges = Node, "network carrier changes", ["network_carrier_changes"];
    /// TCP segments sent again.
    TcpRetransmissions = Node, "TCP retransmissions", ["tcp_retransmissions"];
    /// Share of time some task waited for I/O.
    IoPressure = Node, "I/O pressure", ["io_pressure_some"];
    /// Host memory that is left.
    HostMemoryAvailable = Node, "available host memory", ["host_memory_available"];
    /// Steps done.
    TrainingSteps = Job, "count of steps done", ["training_step"];
    /// Share of time in which the graphics or compute engine was active.
    EngineActive = Gpu, "engine activity", ["graphics_engine_active"];
    /// How far a node's clock is off.
    ClockOffset = Node, "clock offset", ["clock_offset"];
    /// Bytes sent over the network.
    NetworkSent = Node, "bytes sent over the network", ["network_transmit_bytes"];
    /// Bytes received over the network.
    NetworkReceived = Node, "bytes received over the network", ["network_receive_bytes"];
    /// Seconds of the node's CPUs, one series per mode.
    CpuTime = Node, "CPU time", ["cpu_seconds"];
    /// Share of time some task waited for a CPU.
    CpuPressure = Node, "CPU pressure", ["cpu_pressure"];
    /// Tasks that want a CPU.
    RunnableTasks = Node, "number of runnable tasks", ["procs_running"];
    /// Runnable and blocked tasks, averaged over a minute.
    LoadAverage = Node, "load average", ["load_average_1m"];
    /// Tasks that wait for I/O.
    BlockedTasks = Node, "number of tasks blocked in I/O", ["procs_blocked"];
    /// NFS calls sent again.
    NfsRetransmissions = Node, "NFS retransmissions", ["nfs_retransmissions"];
    /// Time in which a disk had requests in flight.
    DiskBusy = Node, "disk busy time", ["disk_io_time"];
    /// Bytes written to disks.
    DiskWritten = Node, "amount written to disk", ["disk_written_bytes"];
    /// Bytes a GPU receives over PCIe.
    PcieReceive = Gpu, "PCIe receive rate", ["pcie_rx_rate"];
    /// PCIe generation in use.
    PcieGeneration = Gpu, "PCIe link generation", ["pcie_link_gen"];
    /// GPU memory that is left.
    MemoryFree = Gpu, "free GPU memory", ["gpu_memory_free"];
    /// Single-precision pipe activity.
    Fp32Active = Gpu, "single-precision activity", ["fp32_active"];
    /// The SM clock that was set for applications.
    AppClock = Gpu, "application clock", ["app_sm_clock"];
    /// Processes the kernel killed for want of memory.
    OomKills = Node, "number of processes killed for want of memory", ["oom_kills"];
    /// Out-of-memory errors the framework counted.
    TrainingOoms = Job, "number of out-of-memory errors", ["training_ooms"];
    /// Allocations the framework had to try again after emptying its cache.
    AllocRetries = Job, "number of allocation retries", ["training_alloc_retries"];
    /// GPU memory the framework holds.
    MemoryReserved = Job, "GPU memory reserved by the framework", ["training_memory_reserved", "training_memory_reserved_bytes"];
    /// GPU memory the framework's tensors take.
    MemoryActive = Job, "GPU memory taken by tensors", ["training_memory_active", "training_memory_active_bytes"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_no_digits_so_that_they_can_stand_in_a_claim() {
        assert!(Signal::ALL.iter().all(|s| !s.words().contains(|c: char| c.is_ascii_digit())));
    }
}
