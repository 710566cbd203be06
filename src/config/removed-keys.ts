import type { Path } from './fault.ts'

/** Keys that earlier versions had; `*` stands for any name. The text says what to write instead. */
const removedKeys: Readonly<Record<string, string>> = {
  'services.*.batch.extensions':
    'removed in 0.1.0: reads and Idempotency-Key work in every batch; send references and items for other services as requests of their own; leave the key out',
  'services.*.batch.services':
    'removed in 0.1.0: send items for another service to that service; leave the key out',
  'services.*.upstream.http2':
    'removed in 0.1.0: upstreams get HTTP/1.1 over connections that are kept; leave the key out',
  'services.*.responseChecks':
    'removed in 0.1.0: responses are not compared with the document any more; leave the section out',
}

/** What to do about a key that earlier versions had; undefined for every other key. */
export const removedKey = (path: Path): string | undefined =>
  Object.entries(removedKeys).find(([pattern]) => {
    const steps = pattern.split('.')
    return steps.length === path.length && steps.every((step, at) => step === '*' || step === path[at])
  })?.[1]
