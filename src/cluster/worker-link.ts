import cluster from 'node:cluster'
import type { LedgerPosition } from '../cache/shared-tier.ts'
import type { Appended, Ledger, LedgerPush, Synced } from './ledger.ts'

/** The assignment of a worker at its start. Plain data: it is sent as JSON. */
export type Assignment = {
  /** Name among the members, unique for each process. */
  readonly member: string
  /** Data of the composition root; not read here. */
  readonly settings: unknown
}

/** State of the workers, for readiness and metrics. */
export type WorkersStatus = {
  readonly wanted: number
  readonly ready: number
  /** Have all been ready once? */
  readonly complete: boolean
  /** Workers that ended unexpectedly, by cause. */
  readonly ended: Readonly<Record<WorkerEnd, number>>
}

/** `stuck`: its heartbeat was missing and it was killed. */
export type WorkerEnd = 'exit' | 'signal' | 'stuck'

export type WorkerEnding = {
  readonly member: string
  /** 0: the system could not start the process; `code` gives the reason. */
  readonly pid: number
  readonly end: WorkerEnd
  readonly code: number | string
  /** Writes that it had begun; their outcome is unknown. */
  readonly unsettled: number
}

export type WorkerEvent =
  | { readonly kind: 'worker-ready'; readonly member: string; readonly pid: number }
  | (WorkerEnding & { readonly kind: 'worker-ended'; readonly nextInMs: number })

/** The system's error for a socket that could not be opened; undefined for other failures. */
export type FailureFacts = {
  readonly code?: unknown
  readonly syscall?: unknown
  readonly address?: unknown
  readonly port?: unknown
}

export type LedgerCall =
  | { readonly name: 'sync'; readonly position: LedgerPosition }
  | { readonly name: 'begin'; readonly write: string; readonly invalidations: readonly string[] }
  | {
      readonly name: 'append'
      readonly invalidations: readonly string[]
      readonly settled: readonly string[]
    }

export type LedgerResponse = Synced | Appended | null

export type WorkerRequest = { readonly topic: string; readonly content: unknown }

export type ToParent =
  /** The worker listens: earlier messages would be lost. */
  | { readonly kind: 'hello' }
  /** The heartbeat: other messages may be rare when the ledger is in Redis. */
  | { readonly kind: 'alive' }
  | { readonly kind: 'ready'; readonly addresses: unknown }
  | { readonly kind: 'failed'; readonly message: string; readonly facts: FailureFacts }
  /** An operator has requested the end of all workers. */
  | { readonly kind: 'end' }
  | { readonly kind: 'call'; readonly id: number; readonly call: LedgerCall }
  | {
      readonly kind: 'acknowledge'
      readonly applied: LedgerPosition
      readonly entries: number
      readonly writer: string | undefined
    }
  | { readonly kind: 'ask'; readonly id: number; readonly question: WorkerRequest }
  | { readonly kind: 'answer'; readonly id: number; readonly content: unknown }

/** Does a drain wait for `drain.delay` first, so that balancers see "not ready"? In a terminal no balancer waits. */
export type DrainStart = 'after-delay' | 'at-once'

export type ToWorker =
  | { readonly kind: 'assigned'; readonly assignment: Assignment }
  | { readonly kind: 'called'; readonly id: number; readonly response: LedgerResponse }
  | { readonly kind: 'pushed'; readonly push: LedgerPush }
  | { readonly kind: 'asked'; readonly id: number; readonly question: WorkerRequest }
  | { readonly kind: 'answered'; readonly id: number; readonly responses: readonly unknown[] }
  | { readonly kind: 'workers-status'; readonly status: WorkersStatus }
  | { readonly kind: 'ended'; readonly member: string }
  | { readonly kind: 'drain'; readonly start: DrainStart }

/** The worker's side of the channel to its parent. */
export type WorkerLink = {
  readonly assignment: Assignment
  readonly ledger: Ledger
  /** Sends a question to all workers, this one included, and returns the responses that arrive in time. */
  ask(question: WorkerRequest): Promise<readonly unknown[]>
  /** Sets the function that answers questions of other workers; call it once. */
  onRequest(response: (question: WorkerRequest) => unknown): void
  status(): WorkersStatus
  /** Called when the parent requests that this worker drains and exits. */
  onDrain(drain: (start: DrainStart) => void): void
  /** Called when the parent has seen another worker end. */
  onEnded(take: (member: string) => void): void
  ready(addresses: unknown): void
  failed(cause: unknown): void
  /** Requests that the parent drains all workers and exits. */
  end(): void
}

/** The channel of `node:child_process`: messages in order, none lost while both ends live. */
type WorkerChannel = {
  send(message: ToParent): void
  listen(take: (message: ToWorker) => void): void
}

/** Interval of the worker's heartbeat; after many missed ones the parent kills it. */
const aliveEveryMs = 1_000

const noWorkers: WorkersStatus = {
  wanted: 0,
  ready: 0,
  complete: false,
  ended: { exit: 0, signal: 0, stuck: 0 },
}

/** Calls and their responses, matched by a number. */
const createCalls = <Value>() => {
  const open = new Map<number, (value: Value) => void>()
  let last = 0
  return {
    begin: (send: (id: number) => void): Promise<Value> =>
      new Promise((resolve) => {
        last += 1
        open.set(last, resolve)
        send(last)
      }),
    end: (id: number, value: Value): void => {
      open.get(id)?.(value)
      open.delete(id)
    },
  }
}

const failureOf = (cause: unknown): Extract<ToParent, { kind: 'failed' }> => {
  if (!(cause instanceof Error)) return { kind: 'failed', message: String(cause), facts: {} }
  const { code, syscall, address, port } = cause as Error & FailureFacts
  return { kind: 'failed', message: cause.message, facts: { code, syscall, address, port } }
}

/** Waits for the assignment of the parent. A worker whose parent has ended exits, so that no call waits for ever. */
export const linkToParent = async (line: WorkerChannel): Promise<WorkerLink> => {
  const calls = createCalls<LedgerResponse>()
  const questions = createCalls<readonly unknown[]>()
  let status = noWorkers
  let push: (push: LedgerPush) => void = () => undefined
  let response: (question: WorkerRequest) => unknown = () => undefined
  // No request has begun yet.
  let drain: (start: DrainStart) => void = () => process.exit(0)
  let ended: (member: string) => void = () => undefined

  const reply = async (id: number, question: WorkerRequest): Promise<void> => {
    let content: unknown = null
    try {
      content = await response(question)
    } catch {
      // The asking worker gets the responses of the others.
    }
    line.send({ kind: 'answer', id, content })
  }
  const assignment = await new Promise<Assignment>((assigned) => {
    line.listen((message) => {
      switch (message.kind) {
        case 'assigned':
          assigned(message.assignment)
          break
        case 'called':
          calls.end(message.id, message.response)
          break
        case 'pushed':
          push(message.push)
          break
        case 'asked':
          void reply(message.id, message.question)
          break
        case 'answered':
          questions.end(message.id, message.responses)
          break
        case 'workers-status':
          status = message.status
          break
        case 'ended':
          ended(message.member)
          break
        case 'drain':
          drain(message.start)
          break
      }
    })
    line.send({ kind: 'hello' })
  })
  setInterval(() => line.send({ kind: 'alive' }), aliveEveryMs).unref()
  const call = (ledgerCall: LedgerCall): Promise<LedgerResponse> =>
    calls.begin((id) => line.send({ kind: 'call', id, call: ledgerCall }))

  return {
    assignment,
    ledger: {
      sync: async (position) => (await call({ name: 'sync', position })) as Synced,
      begin: async (write, invalidations) => {
        await call({ name: 'begin', write, invalidations })
      },
      append: async (invalidations, settled) =>
        (await call({ name: 'append', invalidations, settled })) as Appended,
      acknowledge: (applied, entries, writer) => line.send({ kind: 'acknowledge', applied, entries, writer }),
      // The parent receives the exit event.
      forget: () => Promise.resolve(),
      listen: (take) => {
        push = take
      },
      leave: () => Promise.resolve(),
    },
    ask: (question) => questions.begin((id) => line.send({ kind: 'ask', id, question })),
    onRequest: (listener) => {
      response = listener
    },
    status: () => status,
    onDrain: (listener) => {
      drain = listener
    },
    onEnded: (listener) => {
      ended = listener
    },
    ready: (addresses) => line.send({ kind: 'ready', addresses }),
    failed: (cause) => line.send(failureOf(cause)),
    end: () => line.send({ kind: 'end' }),
  }
}

export const isWorker = (): boolean => cluster.isWorker

export const parentLine = (): WorkerChannel => ({
  send: (message) => {
    // After the parent has ended this process exits. Until then, sending fails with an error that would be thrown
    // where no listener catches it.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined)
  },
  listen: (take) => {
    process.on('message', (message) => take(message as ToWorker))
  },
})
