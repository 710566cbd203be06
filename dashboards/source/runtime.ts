import type { DashboardFacts } from './dashboard.ts'
import { lines, number, table } from './panel.ts'
import { ofProcess, processRate, rate, series, total } from './query.ts'

/** The process itself: whether it keeps up, what it holds, and what runs. */
export const runtime: DashboardFacts = {
  name: 'runtime',
  title: 'Trellis runtime',
  description: 'Event loop, processor, memory, connections, and which version and configuration run where.',
  sections: [
    {
      title: 'What runs',
      panels: [
        table({
          title: 'Versions',
          description: 'Version and Node.js of each instance.',
          unit: 'none',
          queries: [[series('buildInfo').text, '']],
        }),
        table({
          title: 'Configurations',
          description: 'Configuration in force in each instance, by hash: all should have the same.',
          unit: 'none',
          queries: [[series('configInfo').text, '']],
        }),
        number({
          title: 'Last start',
          description: 'When the youngest process began.',
          unit: 'dateTimeFromNow',
          width: 8,
          queries: [[`max(${ofProcess('process_start_time_seconds')}) * 1000`, '']],
        }),
        number({
          title: 'Draining',
          description: 'Instances that are going away.',
          unit: 'short',
          width: 8,
          queries: [[total(series('draining')), '']],
        }),
        number({
          title: 'Lumped series',
          description: 'Observations for which a metric had too many series; anything but 0 is a fault.',
          unit: 'short',
          width: 8,
          thresholds: [1, 1],
          queries: [[`sum(${series('seriesOverflow').text}) or vector(0)`, '']],
        }),
      ],
    },
    {
      title: 'Life',
      panels: [
        lines({
          title: 'Reloads',
          description:
            'Changes of the configuration, by how they ended; a refused one left the old configuration in force.',
          unit: 'ops',
          queries: [[rate(series('configReloads'), ['instance', 'outcome']), '{{instance}} {{outcome}}']],
        }),
        number({
          title: 'Last reload',
          description: 'When an instance last read its configuration anew, whatever came of it.',
          unit: 'dateTimeFromNow',
          queries: [[`max(${series('configReloadTime').text}) * 1000`, '']],
        }),
        number({
          title: 'Refused configurations',
          description:
            'Instances whose last reload was refused: their file says something else than they do.',
          unit: 'short',
          thresholds: [1, 1],
          queries: [[`count(${series('configReloadGood').text} == 0) or vector(0)`, '']],
        }),
        number({
          title: 'Certificate',
          description: 'When the first of the certificates of the public side ends.',
          unit: 'dateTimeFromNow',
          queries: [[`min(${series('certificateExpiry').text}) * 1000`, '']],
        }),
        number({
          title: 'Faults',
          description: 'Rejections and exceptions that nobody caught.',
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
          description: 'Processes that share the port, those that should and those that accept requests.',
          unit: 'short',
          queries: [
            [total(series('workersWanted'), ['instance'], 'max'), '{{instance}} wanted'],
            [total(series('workersReady'), ['instance'], 'max'), '{{instance}} ready'],
          ],
        }),
        lines({
          title: 'Workers ended',
          description: 'Since the start, by how; each was replaced.',
          unit: 'short',
          queries: [[total(series('workerEnds'), ['instance', 'end'], 'max'), '{{instance}} {{end}}']],
        }),
        lines({
          title: 'Spans and log lines',
          description:
            'What was recorded, what the collector did not take, and lines given up because nobody read them.',
          unit: 'ops',
          queries: [
            [rate(series('traceSpans'), ['outcome']), 'spans {{outcome}}'],
            [rate(series('logLinesDropped')), 'lines given up'],
          ],
        }),
      ],
    },
    {
      title: 'Load',
      panels: [
        lines({
          title: 'Event loop delay',
          description: 'How late the process comes to its work.',
          unit: 's',
          queries: [
            [ofProcess('nodejs_eventloop_lag_p50_seconds'), '{{instance}} half'],
            [ofProcess('nodejs_eventloop_lag_p99_seconds'), '{{instance}} 99 %'],
            [ofProcess('nodejs_eventloop_lag_max_seconds'), '{{instance}} longest'],
          ],
        }),
        lines({
          title: 'Processor',
          description:
            'Processor seconds a second; much more than 1 is the work of threads (compression, garbage).',
          unit: 'short',
          queries: [
            [processRate('process_cpu_user_seconds_total'), '{{instance}} user'],
            [processRate('process_cpu_system_seconds_total'), '{{instance}} system'],
          ],
        }),
        lines({
          title: 'Garbage collection',
          description: 'Seconds a second, by kind.',
          unit: 's',
          queries: [[processRate('nodejs_gc_duration_seconds_sum'), '{{instance}} {{kind}}']],
        }),
        lines({
          title: 'Memory',
          description:
            'Resident memory, heap, and what buffers hold outside of it: the cache is there, and what is held for requests under way.',
          unit: 'bytes',
          queries: [
            [ofProcess('process_resident_memory_bytes'), '{{instance}} resident'],
            [ofProcess('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
            [ofProcess('nodejs_external_memory_bytes'), '{{instance}} outside'],
            [total(series('bufferedBytes'), ['instance']), '{{instance}} under way'],
          ],
        }),
        lines({
          title: 'Connections and files',
          description: 'Connections of clients, and files the process has open.',
          unit: 'short',
          queries: [
            [total(series('connections'), ['instance']), '{{instance}} connections'],
            [ofProcess('process_open_fds'), '{{instance}} files'],
          ],
        }),
        lines({
          title: 'Bytes by instance',
          description: 'Over the connections of the public side.',
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
