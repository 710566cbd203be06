import type { RequestFields } from '../http/fields.ts'
import { conditionalFields } from '../http/preconditions.ts'

/** What `forward` withholds from the upstream or sends in the client's place, for each list that `decideCaching` gives. */
const shared = (withhold: readonly string[]) => {
  const withheld: ReadonlySet<string> = new Set([...conditionalFields, ...withhold])
  const settled: RequestFields = {
    'accept-encoding': 'identity',
    ...Object.fromEntries([...withheld].map((name) => [name, undefined])),
  }
  return { withheld, settled }
}
/** Of a read whose answer does not depend on cookies, nor on Origin. */
export const withholdsNothing = shared([])
/** By what a browser may be told by the gateway, and by the cookies that no server reads. */
export const withholding = {
  asAsked: { nothing: withholdsNothing, cookie: shared(['cookie']) },
  withoutOrigin: { nothing: shared(['origin']), cookie: shared(['cookie', 'origin']) },
} as const
