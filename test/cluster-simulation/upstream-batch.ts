import type { Connection } from './connection.ts'
import { type Interface, json, jsonType } from './services/interface.ts'
import type { Write } from './upstream.ts'
import { world } from './world.ts'

type BatchContent = {
  readonly requests: readonly { readonly headers?: Readonly<Record<string, string>> }[]
}

/** The names of the writes in a batch that a gateway sends. */
export const namesInBatch = (content: Buffer | undefined): readonly string[] =>
  (JSON.parse(content?.toString() ?? '{"requests":[]}') as BatchContent).requests.map(
    ({ headers }) => headers?.['x-write'] ?? '',
  )

type BatchParts = {
  readonly service: Interface
  readonly carryOut: (write: Write) => void
  readonly carryOutLate: (write: Write) => void
}

type ItemResult = { readonly status: number; readonly headers: readonly never[]; readonly body: unknown }

const result = (status: number, body: unknown): ItemResult => ({ status, headers: [], body })
const refused = result(400, { code: 'rest_invalid_param', message: '', data: { status: 400 } })
const failed = result(500, { code: 'internal_server_error', message: '', data: { status: 500 } })

/** `breaks`: without a response to any of them; `late`: so do all that follow, and nobody hears of it. */
type Step = ItemResult | 'breaks' | 'late'

/** WordPress' batch/v1: one item after the other, and one response to all. */
export const createBatchResponder = ({ service, carryOut, carryOutLate }: BatchParts) => {
  const step = (write: Write): Step => {
    switch (write.fate) {
      case 'refused':
        return refused
      case 'dropped':
        return 'breaks'
      case 'late':
        return 'late'
      case 'repeated':
        if (write.version > 0) return refused
        carryOut(write)
        return 'breaks'
      case 'lost':
      case 'broken':
      case 'partial':
        carryOut(write)
        return 'breaks'
      case 'failed':
        carryOut(write)
        return failed
      case 'answered':
      case 'streamed': {
        carryOut(write)
        const { status, content } = service.written(write)
        return result(status, JSON.parse(content.toString()))
      }
    }
  }

  const next = (left: readonly Write[], connection: Connection, done: readonly ItemResult[]): void => {
    const [write, ...others] = left
    if (write === undefined) {
      const content = json({ responses: done })
      connection.head(207, jsonType, () => connection.withHead(content))
      return
    }
    const outcome = step(write)
    if (outcome === 'breaks') connection.breaks()
    else if (outcome === 'late') for (const one of left) carryOutLate(one)
    else {
      const run = (): void => next(others, connection, [...done, outcome])
      world.schedule(world.now + connection.delay(), undefined, 'upstream has carried out an item', run)
    }
  }
  return (writes: readonly Write[], connection: Connection): void => next(writes, connection, [])
}
