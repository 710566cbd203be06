import type { Script } from '../../support/origin.ts'

/** What every upstream of the matrix says while nothing is wrong with it. */
export const goodResponse = '{"id":1,"slug":"good"}'

/** Answers so. */
export const good = (...[, wire]: Parameters<Script>): void =>
  wire.respond({ headers: { 'Content-Type': 'application/json' }, content: goodResponse })

/** The same on a connection for this response alone, so that the next request needs a new one. */
export const goodOnce: Script = (_, wire) => {
  wire.respond({
    headers: { 'Content-Type': 'application/json', Connection: 'close' },
    content: goodResponse,
  })
  wire.end()
}
