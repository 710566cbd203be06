import type { Script } from '../../support/origin.ts'

/** What every upstream of the matrix says while nothing is wrong with it. */
export const goodAnswer = '{"id":1,"slug":"good"}'

/** Answers so. */
export const good = (...[, wire]: Parameters<Script>): void =>
  wire.respond({ fields: { 'Content-Type': 'application/json' }, content: goodAnswer })

/** The same on a connection for this answer alone, so that the next request needs a new one. */
export const goodOnce: Script = (_, wire) => {
  wire.respond({ fields: { 'Content-Type': 'application/json', Connection: 'close' }, content: goodAnswer })
  wire.end()
}
