import type { AnyOrigin } from '../../http/headers/cors.ts'
import { createRecentValues } from '../../http/memo.ts'
import type { AnyOrigins } from '../../service/connection.ts'
import type { Row } from '../../service/row.ts'

// WordPress allows pages of every origin to read its REST interface: it repeats the Origin, and says Vary: Origin. Plugins have
// policies of their own for their routes. What an upstream allows is read from its responses to an origin that nobody can have listed.

const maxRoutes = 4096

/** Questions to one upstream at a time: a client chooses when a route is asked for the first time. */
const maxQuestions = 4

type Route = {
  /** The reading of the index after which it was asked last. */
  reading: number
  response: { readonly policy: AnyOrigin | undefined } | undefined
  question: Promise<AnyOrigin | undefined> | undefined
}

/** Each route is asked once after each reading of the index. `ask` rejects where the upstream gave no response of its own. */
export const createAnyOrigins = (
  ask: (path: string) => Promise<AnyOrigin | undefined>,
): AnyOrigins & { indexRead(policy: AnyOrigin | undefined): void } => {
  // Each reading of the index makes new rows of the same routes.
  const routes = createRecentValues<Route>(maxRoutes)
  let site: AnyOrigin | undefined
  let reading = 0
  let questions = 0
  const question = async (route: Route, path: string): Promise<AnyOrigin | undefined> => {
    questions += 1
    try {
      route.response = { policy: await ask(path) }
    } catch {
      // The next request asks again, and does not wait for it.
      route.response ??= { policy: undefined }
      route.reading = -1
    } finally {
      questions -= 1
    }
    return route.response.policy
  }
  const routeOf = ({ pattern }: Row): Route => {
    const route = routes.get(pattern) ?? { reading: -1, response: undefined, question: undefined }
    routes.set(pattern, route)
    return route
  }
  return {
    site: () => site,
    route: ({ pattern }) => routes.get(pattern)?.response?.policy,
    askRoute: (row, path) => {
      const route = routeOf(row)
      if (route.reading !== reading && questions < maxQuestions) {
        route.reading = reading
        route.question = question(route, path)
      }
      return route.response === undefined ? route.question : route.response.policy
    },
    indexRead: (policy) => {
      site = policy
      reading += 1
    },
  }
}
