import {
  type BatchEvent,
  type BatchItemOutcome,
  type BatchMethod,
  type BatchResult,
  batchMethods,
} from './events.ts'
import type { ScheduleEnd, TaskEnd } from './order/run-schedule.ts'

const methodLabel = (method: string | undefined): BatchMethod =>
  batchMethods.find((batchMethod) => batchMethod === method) ?? '_OTHER'

const outcomeTable: Readonly<Record<TaskEnd<unknown>['kind'], BatchItemOutcome>> = {
  finished: 'answered',
  'not-begun': 'not-sent',
  unfinished: 'outcome-unknown',
}

/** The event of one item; `end` is undefined for one that was refused. */
export const itemEvent = (
  item: { readonly method: string | undefined; readonly status: number },
  end: TaskEnd<unknown> | undefined,
  times: { readonly batchStartedMs: number; readonly nowMs: number },
): BatchEvent => {
  const startedMs = end === undefined || end.kind === 'not-begun' ? undefined : end.startedMs
  const endedMs = end?.kind === 'finished' ? end.endedMs : times.nowMs
  return {
    kind: 'batch-item-finished',
    method: methodLabel(item.method),
    outcome: end === undefined ? 'refused' : outcomeTable[end.kind],
    status: item.status,
    queuedSeconds: startedMs === undefined ? 0 : (startedMs - times.batchStartedMs) / 1000,
    durationSeconds: startedMs === undefined ? 0 : (endedMs - startedMs) / 1000,
  }
}

/** The event of a whole batch; without a schedule nothing ran. */
export const batchEvent = (
  batch: { readonly result: BatchResult; readonly items: number; readonly durationMs: number },
  schedule?: {
    readonly end: ScheduleEnd<unknown>
    readonly waits: readonly (readonly number[] | undefined)[]
  },
): BatchEvent => {
  const spent = (schedule?.end.ends ?? []).map((end) =>
    end.kind === 'finished' ? end.endedMs - end.startedMs : 0,
  )
  return {
    kind: 'batch-finished',
    result: batch.result,
    items: batch.items,
    durationSeconds: batch.durationMs / 1000,
    itemSeconds: spent.reduce((sum, ms) => sum + ms, 0) / 1000,
    parallelism: schedule?.end.parallelism ?? 0,
    ordered: (schedule?.waits ?? []).filter((waits) => waits !== undefined && waits.length > 0).length,
  }
}
