import { forAll } from '../for-all.ts'
import { basic } from '../site-under-test.ts'
import type { WordPress } from '../wordpress/start-wordpress.ts'
import { compare, type Difference } from './compare.ts'
import { caseHeader, type Passage, type Relay } from './relay.ts'
import { type RequestCase, titleOf } from './request-case.ts'
import { type PlainResponse, send } from './send.ts'
import { inNeutralNames, type Site } from './spelling.ts'

/** A gateway's service, and the WordPress behind it. */
export type Behind = {
  readonly title: string
  readonly site: Site
  /** Origin that the gateway's clients talk to, and the mount of the service. */
  readonly origin: string
  readonly mount: string
  readonly relay: Relay
}

/** The outcome of one case at one service. */
export type Outcome = {
  readonly through: string
  readonly time: 'first' | 'second'
  readonly response: PlainResponse
  readonly differences: readonly Difference[]
}

export type CaseReport = {
  readonly title: string
  readonly direct: PlainResponse
  readonly outcomes: readonly Outcome[]
  /** Everything that reached a WordPress on behalf of this case. */
  readonly passages: readonly Passage[]
}

export type Run = {
  readonly wordpress: WordPress
  readonly services: readonly Behind[]
  /** Whether anonymous reads are repeated, to see what comes from the cache; what others ask is not kept. */
  readonly repeats: boolean
  steady(content: unknown): unknown
}

/** Sends one case directly and then through each service, and compares. */
async function runCase(request: RequestCase, number: number, run: Run): Promise<CaseReport> {
  const { wordpress, services } = run
  const headers = headersFor(request, wordpress)
  const { method, content } = request
  const root = new URL(wordpress.restRoot).pathname
  const [direct, ...responded] = await Promise.all([
    send(wordpress.origin, { method, target: root + request.target, headers, content }),
    ...services.map((service) => responsesOf(service)),
  ])
  const outcomes = responded.flat().map(({ service, time, answer: response }): Outcome => {
    const { site, relay, title } = service
    const differences = compare({
      ...{ direct, response, site, home: wordpress.restRoot },
      ...{ upstreamLinks: relay.links, steady: run.steady },
    })
    return { through: title, time, response, differences }
  })
  const passages = services.flatMap(({ title, relay }) => relay.passages(`${title} ${number}`))
  return { title: titleOf(request), direct, outcomes, passages }

  async function responsesOf(service: Behind) {
    const isNeutral = service.site.names === 'neutral'
    const spelled = (text: string): string => (isNeutral ? inNeutralNames(text) : text)
    const responses = []
    for (const time of timesOf(request, run)) {
      const response = await send(service.origin, {
        method,
        target: service.mount + spelled(request.target),
        headers: { ...headers, [caseHeader]: `${service.title} ${number}` },
        content: content === undefined ? undefined : spelled(content),
      })
      responses.push({ service, time, answer: response })
    }
    return responses
  }
}

/** All cases, a few at a time: WordPress has as many workers. */
export const runCases = (cases: readonly RequestCase[], run: Run, atOnce: number): Promise<CaseReport[]> =>
  forAll(cases, (request, number) => runCase(request, number, run), atOnce)

function timesOf({ as, method }: RequestCase, run: Run): readonly Outcome['time'][] {
  const repeated = run.repeats && as === 'anonymous' && (method === 'GET' || method === 'HEAD')
  return repeated ? ['first', 'second'] : ['first']
}

function headersFor({ as, headers }: RequestCase, wordpress: WordPress): Record<string, string> {
  return as === 'anonymous' ? { ...headers } : { Authorization: basic(wordpress.credentials[as]), ...headers }
}
