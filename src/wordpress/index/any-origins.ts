import { variesBy } from '../../http/caching-fields.ts'
import { createRecentValues } from '../../http/memo.ts'
import { type FieldLines, fieldValue } from '../../http/message.ts'
import type { AnyOrigin, AnyOrigins } from '../../service/announced.ts'
import type { Row } from '../../service/row.ts'

// WordPress allows pages of every origin to read its REST interface: it repeats the Origin, and says Vary: Origin. Plugins have
// policies of their own for their routes. What an upstream allows is read from its answers to an origin that nobody can have listed.

const allowOrigin = 'access-control-allow-origin'

/** Of each route this much is remembered at most; WordPress sends 270 bytes. */
const mostPolicyBytes = 2048
const mostRoutes = 4096

/** What a response to a made-up origin shows: if that is allowed, every origin is. Undefined: not every origin. */
export const anyOriginOf = (fields: FieldLines, origin: string): AnyOrigin | undefined => {
  const allowedOrigin = fieldValue(fields, allowOrigin)
  const isRepeated = allowedOrigin === origin && variesBy(fields, 'origin')
  if (!isRepeated && allowedOrigin !== '*') return undefined
  const otherFields: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = (fields[i] as string).toLowerCase()
    if (name.startsWith('access-control-') && name !== allowOrigin)
      otherFields.push(...fields.slice(i, i + 2))
  }
  return otherFields.join('').length > mostPolicyBytes ? undefined : { isRepeated, others: otherFields }
}

/** Questions to one upstream at a time: a client chooses when a route is asked for the first time. */
const mostQuestions = 4

type Route = {
  /** The reading of the index after which it was asked last. */
  reading: number
  answer: { readonly policy: AnyOrigin | undefined } | undefined
  question: Promise<AnyOrigin | undefined> | undefined
}

/** Each route is asked once after each reading of the index. `ask` rejects where the upstream gave no answer of its own. */
export const createAnyOrigins = (
  ask: (path: string) => Promise<AnyOrigin | undefined>,
): AnyOrigins & { indexRead(policy: AnyOrigin | undefined): void } => {
  // Each reading of the index makes new rows of the same routes.
  const routes = createRecentValues<Route>(mostRoutes)
  let site: AnyOrigin | undefined
  let reading = 0
  let questions = 0
  const question = async (route: Route, path: string): Promise<AnyOrigin | undefined> => {
    questions += 1
    try {
      route.answer = { policy: await ask(path) }
    } catch {
      // The next request asks again, and does not wait for it.
      route.answer ??= { policy: undefined }
      route.reading = -1
    } finally {
      questions -= 1
    }
    return route.answer.policy
  }
  const routeOf = ({ pattern }: Row): Route => {
    const route = routes.get(pattern) ?? { reading: -1, answer: undefined, question: undefined }
    routes.set(pattern, route)
    return route
  }
  return {
    site: () => site,
    route: ({ pattern }) => routes.get(pattern)?.answer?.policy,
    askRoute: (row, path) => {
      const route = routeOf(row)
      if (route.reading !== reading && questions < mostQuestions) {
        route.reading = reading
        route.question = question(route, path)
      }
      return route.answer === undefined ? route.question : route.answer.policy
    },
    indexRead: (policy) => {
      site = policy
      reading += 1
    },
  }
}
