import type { DashboardFacts } from './dashboard.ts'
import { lines, number, table } from './panel.ts'
import { ofProcess, processRate, rate, series, total } from './query.ts'

/** The process itself: whether it keeps up, what it holds, and what runs. */
export const runtime: DashboardFacts = {
  name: 'runtime',
  title: 'Trellis runtime',
  description: 'Event loop, CPU, memory, connections, versions and configurations.',
  sections: [
    {
      title: 'Instances',
      panels: [
        table({
          title: 'Versions',
          description: 'Version and Node.js of each instance.',
          unit: 'none',
          queries: [[series('buildInfo').text, '']],
        }),
        table({
          title: 'Configurations',
          description: 'Active configuration of each instance, by hash; all should be equal.',
          unit: 'none',
          queries: [[series('configInfo').text, '']],
        }),
        number({
          title: 'Last start',
          description: 'Start time of the newest process.',
          unit: 'dateTimeFromNow',
          width: 8,
          queries: [[`max(${ofProcess('process_start_time_seconds')}) * 1000`, '']],
        }),
        number({
          title: 'Draining',
          description: 'Instances that are shutting down.',
          unit: 'short',
          width: 8,
          queries: [[total(series('draining')), '']],
        }),
        number({
          title: 'Overflowing series',
          description: 'Observations counted under _overflow; should be 0.',
          unit: 'short',
          width: 8,
          thresholds: [1, 1],
          queries: [[`sum(${series('seriesOverflow').text}) or vector(0)`, '']],
        }),
      ],
    },
    {
      title: 'Configuration',
      panels: [
        lines({
          title: 'Reloads',
          description:
            'Reloads of the configuration, by outcome; after a refused one the old configuration stays active.',
          unit: 'ops',
          queries: [[rate(series('configReloads'), ['instance', 'outcome']), '{{instance}} {{outcome}}']],
        }),
        number({
          title: 'Last reload',
          description: 'Time of the last reload, with any outcome.',
          unit: 'dateTimeFromNow',
          queries: [[`max(${series('configReloadTime').text}) * 1000`, '']],
        }),
        number({
          title: 'Refused configurations',
          description:
            'Instances whose last reload was refused: the file and the active configuration differ.',
          unit: 'short',
          thresholds: [1, 1],
          queries: [[`count(${series('configReloadGood').text} == 0) or vector(0)`, '']],
        }),
        number({
          title: 'Certificate',
          description: 'Time until the first certificate expires.',
          unit: 'dateTimeFromNow',
          queries: [[`min(${series('certificateExpiry').text}) * 1000`, '']],
        }),
        number({
          title: 'Faults',
          description: 'Uncaught exceptions and rejections.',
          unit: 'short',
          thresholds: [1, 1],
          queries: [[`sum(${series('processFaults').text}) or vector(0)`, '']],
        }),
      ],
    },
    {
      title: 'Workers, log and traces',
      panels: [
        lines({
          title: 'Workers',
          description: 'Configured workers, and workers that accept requests.',
          unit: 'short',
          queries: [
            [total(series('workersWanted'), ['instance'], 'max'), '{{instance}} wanted'],
            [total(series('workersReady'), ['instance'], 'max'), '{{instance}} ready'],
          ],
        }),
        lines({
          title: 'Workers ended',
          description: 'Workers that ended unexpectedly since the start; each was replaced.',
          unit: 'short',
          queries: [[total(series('workerEnds'), ['instance', 'end'], 'max'), '{{instance}} {{end}}']],
        }),
        lines({
          title: 'Spans, pushes and log lines',
          description: 'Recorded spans, failed exports, pushes of metrics, and dropped log lines.',
          unit: 'ops',
          queries: [
            [rate(series('traceSpans'), ['outcome']), 'spans {{outcome}}'],
            [rate(series('metricPushes'), ['outcome']), 'pushes {{outcome}}'],
            [rate(series('logLinesDropped')), 'log lines dropped'],
          ],
        }),
      ],
    },
    {
      title: 'Load',
      panels: [
        lines({
          title: 'Event loop delay',
          description: 'Delay of the event loop.',
          unit: 's',
          queries: [
            [ofProcess('nodejs_eventloop_lag_p50_seconds'), '{{instance}} half'],
            [ofProcess('nodejs_eventloop_lag_p99_seconds'), '{{instance}} 99 %'],
            [ofProcess('nodejs_eventloop_lag_max_seconds'), '{{instance}} longest'],
          ],
        }),
        lines({
          title: 'CPU',
          description:
            'CPU seconds per second; above 1 is work of threads (compression, garbage collection).',
          unit: 'short',
          queries: [
            [processRate('process_cpu_user_seconds_total'), '{{instance}} user'],
            [processRate('process_cpu_system_seconds_total'), '{{instance}} system'],
          ],
        }),
        lines({
          title: 'Garbage collection',
          description: 'Seconds per second, by kind.',
          unit: 's',
          queries: [[processRate('nodejs_gc_duration_seconds_sum'), '{{instance}} {{kind}}']],
        }),
        lines({
          title: 'Memory',
          description: 'Resident memory, heap, and buffers outside the heap: the cache and bodies in flight.',
          unit: 'bytes',
          queries: [
            [ofProcess('process_resident_memory_bytes'), '{{instance}} resident'],
            [ofProcess('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
            [ofProcess('nodejs_external_memory_bytes'), '{{instance}} outside'],
            [total(series('bufferedBytes'), ['instance']), '{{instance}} bodies in flight'],
          ],
        }),
        lines({
          title: 'Connections and files',
          description:
            'Client connections, open WebSockets and those that ended, and open files of the process.',
          unit: 'short',
          queries: [
            [total(series('connections'), ['instance']), '{{instance}} connections'],
            [total(series('websocketsOpen'), ['service']), '{{service}} WebSockets'],
            [rate(series('websockets'), ['outcome']), 'WebSockets per second: {{outcome}}'],
            [ofProcess('process_open_fds'), '{{instance}} files'],
          ],
        }),
        lines({
          title: 'Bytes by instance',
          description: 'Bytes on client connections.',
          unit: 'Bps',
          queries: [
            [rate(series('receivedBytes'), ['instance']), '{{instance}} received'],
            [rate(series('sentBytes'), ['instance']), '{{instance}} sent'],
          ],
        }),
      ],
    },
  ],
}
