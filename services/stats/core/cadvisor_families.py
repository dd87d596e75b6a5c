"""The metrics of /metrics/cadvisor that are told: names, types and helps as cAdvisor writes them.

Not told, although cAdvisor has them: container_tasks_state and container_cpu_load_average_10s (0 everywhere unless a
netlink reader is switched on), and per container what /proc/diskstats counts of the whole device (0 too).
"""

from __future__ import annotations

from services.stats.core.exposition import Family

_COUNTERS = {
    "container_blkio_device_usage_total": "Blkio Device bytes usage",
    "container_cpu_cfs_periods_total": "Number of elapsed enforcement period intervals.",
    "container_cpu_cfs_throttled_periods_total": "Number of throttled period intervals.",
    "container_cpu_cfs_throttled_seconds_total": "Total time duration the container has been throttled.",
    "container_cpu_system_seconds_total": "Cumulative system cpu time consumed in seconds.",
    "container_cpu_usage_seconds_total": "Cumulative cpu time consumed in seconds.",
    "container_cpu_user_seconds_total": "Cumulative user cpu time consumed in seconds.",
    "container_fs_io_time_seconds_total": "Cumulative count of seconds spent doing I/Os",
    "container_fs_io_time_weighted_seconds_total": "Cumulative weighted I/O time in seconds",
    "container_fs_read_seconds_total": "Cumulative count of seconds spent reading",
    "container_fs_reads_bytes_total": "Cumulative count of bytes read",
    "container_fs_reads_merged_total": "Cumulative count of reads merged",
    "container_fs_reads_total": "Cumulative count of reads completed",
    "container_fs_sector_reads_total": "Cumulative count of sector reads completed",
    "container_fs_sector_writes_total": "Cumulative count of sector writes completed",
    "container_fs_write_seconds_total": "Cumulative count of seconds spent writing",
    "container_fs_writes_bytes_total": "Cumulative count of bytes written",
    "container_fs_writes_merged_total": "Cumulative count of writes merged",
    "container_fs_writes_total": "Cumulative count of writes completed",
    "container_memory_failcnt": "Number of memory usage hits limits",
    "container_memory_failures_total": "Cumulative count of memory allocation failures.",
    "container_network_receive_bytes_total": "Cumulative count of bytes received",
    "container_network_receive_errors_total": "Cumulative count of errors encountered while receiving",
    "container_network_receive_packets_dropped_total": "Cumulative count of packets dropped while receiving",
    "container_network_receive_packets_total": "Cumulative count of packets received",
    "container_network_transmit_bytes_total": "Cumulative count of bytes transmitted",
    "container_network_transmit_errors_total": "Cumulative count of errors encountered while transmitting",
    "container_network_transmit_packets_dropped_total": "Cumulative count of packets dropped while transmitting",
    "container_network_transmit_packets_total": "Cumulative count of packets transmitted",
    "container_oom_events_total": "Count of out of memory events observed for the container",
    "container_pressure_cpu_stalled_seconds_total": "Total time duration no tasks in the container could make"
    " progress due to CPU congestion.",
    "container_pressure_cpu_waiting_seconds_total": "Total time duration tasks in the container have waited due to"
    " CPU congestion.",
    "container_pressure_io_stalled_seconds_total": "Total time duration no tasks in the container could make"
    " progress due to IO congestion.",
    "container_pressure_io_waiting_seconds_total": "Total time duration tasks in the container have waited due to IO"
    " congestion.",
    "container_pressure_memory_stalled_seconds_total": "Total time duration no tasks in the container could make"
    " progress due to memory congestion.",
    "container_pressure_memory_waiting_seconds_total": "Total time duration tasks in the container have waited due"
    " to memory congestion.",
}
_GAUGES = {
    "cadvisor_version_info": "A metric with a constant '1' value labeled by kernel version, OS version, docker version,"
    " cadvisor version & cadvisor revision.",
    "container_file_descriptors": "Number of open file descriptors for the container.",
    "container_fs_inodes_free": "Number of available Inodes",
    "container_fs_inodes_total": "Number of Inodes",
    "container_fs_io_current": "Number of I/Os currently in progress",
    "container_fs_limit_bytes": "Number of bytes that can be consumed by the container on this filesystem.",
    "container_fs_usage_bytes": "Number of bytes that are consumed by the container on this filesystem.",
    "container_last_seen": "Last time a container was seen by the exporter",
    "container_memory_cache": "Number of bytes of page cache memory.",
    "container_memory_kernel_usage": "Size of kernel memory allocated in bytes.",
    "container_memory_mapped_file": "Size of memory mapped files in bytes.",
    "container_memory_max_usage_bytes": "Maximum memory usage recorded in bytes",
    "container_memory_rss": "Size of RSS in bytes.",
    "container_memory_swap": "Container swap usage in bytes.",
    "container_memory_total_active_file_bytes": "Current total active file in bytes.",
    "container_memory_total_inactive_file_bytes": "Current total inactive file in bytes.",
    "container_memory_usage_bytes": "Current memory usage in bytes, including all memory regardless of when it was"
    " accessed",
    "container_memory_working_set_bytes": "Current working set in bytes.",
    "container_processes": "Number of processes running inside the container.",
    "container_scrape_error": "1 if there was an error while getting container metrics, 0 otherwise",
    "container_sockets": "Number of open sockets for the container.",
    "container_spec_cpu_period": "CPU period of the container.",
    "container_spec_cpu_quota": "CPU quota of the container.",
    "container_spec_cpu_shares": "CPU share of the container.",
    "container_spec_memory_limit_bytes": "Memory limit for the container.",
    "container_spec_memory_reservation_limit_bytes": "Memory reservation limit for the container.",
    "container_spec_memory_swap_limit_bytes": "Memory swap limit for the container.",
    "container_start_time_seconds": "Start time of the container since unix epoch in seconds.",
    "container_threads": "Number of threads running inside the container",
    "container_threads_max": "Maximum number of threads allowed inside the container, infinity if value is zero",
    "container_ulimits_soft": "Soft ulimit values for the container root process. Unlimited if -1, except priority and"
    " nice",
    "machine_cpu_cores": "Number of logical CPU cores.",
    "machine_cpu_physical_cores": "Number of physical CPU cores.",
    "machine_cpu_sockets": "Number of CPU sockets.",
    "machine_memory_bytes": "Amount of memory installed on the machine.",
    "machine_nvm_avg_power_budget_watts": "NVM power budget.",
    "machine_nvm_capacity": "NVM capacity value labeled by NVM mode (memory mode or app direct mode).",
    "machine_scrape_error": "1 if there was an error while getting machine metrics, 0 otherwise.",
    "machine_swap_bytes": "Amount of swap memory available on the machine.",
}

FAMILIES: dict[str, Family] = {
    **{name: ("counter", told) for name, told in _COUNTERS.items()},
    **{name: ("gauge", told) for name, told in _GAUGES.items()},
}
