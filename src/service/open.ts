import { createTagNames } from '../cache/tag-names.ts'
import { invalidatedGroups, upstreamTags } from '../cache/upstream-tags.ts'
import type { OpenConfig } from '../config/config.ts'
import { mayMatchPath } from '../config/rule-match.ts'
import { plainItems } from './batch-row.ts'
import type { Contract, Validation, Validator } from './contract.ts'
import { createErrorPage } from './error-page.ts'
import { methodNotAllowed, problemShape } from './problem.ts'
import { meaningByHeader } from './route-request.ts'
import { createRouter, createRowsInUse } from './router.ts'
import type { Row } from './row.ts'
import type { Tagger } from './tagger.ts'

/** Matches any path. The router does not compile its pattern. */
const anyRow: Row = {
  id: 'open.any',
  template: '/**',
  pattern: '/.*',
  namespace: '',
  collection: '',
  kind: 'item',
  handledBy: 'upstream',
  endpoints: [
    { methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'QUERY'], arguments: {}, acceptsUploads: true },
  ],
}

export const openRows: readonly Row[] = [anyRow]

/** Requests are counted by the path pattern of the first rule that is for their path, whatever their method. */
const findByRules = ({ cache: { rules } }: Pick<OpenConfig, 'cache'>): Contract['find'] => {
  const { find } = createRouter(openRows)
  const routes = rules.map(({ match }) => ({
    match,
    row: { ...anyRow, template: `/${match.segments.join('/')}` },
  }))
  return (method, path) => {
    const routeMatch = find(method, path)
    if (routeMatch.kind !== 'found') return routeMatch
    const route = routes.find(({ match }) => mayMatchPath(match, routeMatch.path))
    return route === undefined ? routeMatch : { ...routeMatch, row: route.row }
  }
}

const noArguments: Readonly<Record<string, unknown>> = Object.freeze({})

const tooMany: Validation = {
  kind: 'invalid',
  status: 400,
  code: 'too_many_parameters',
  // RFC 9457 §3.1: without a type the problem is about:blank, and its title is the status phrase.
  body: { title: 'Bad Request', status: 400, detail: 'The query has more parameters than allowed.' },
}

/** Checks bounds only. The query stays byte for byte the same: its meaning is not known. */
export const createOpenValidator = (options: {
  readonly limits: { readonly queryParameters: number }
}): Validator => ({
  validate: ({ query }) =>
    query.split('&', options.limits.queryParameters + 1).length > options.limits.queryParameters
      ? tooMany
      : { kind: 'valid', query, arguments: noArguments },
})

/** Only the tags of the upstream; beside them a write invalidates its URL, and those that it and its response name. */
export const createOpenTagger = ({ service }: { readonly service: string }): Tagger => {
  const names = createTagNames(service)
  return {
    storedTags: (_found, _args, response) => upstreamTags(names, response.headers),
    callers: undefined,
    undeclared: undefined,
    readability: () => 'readable',
    writtenTags: (_found, _args, _method, response) =>
      response === undefined ? [] : invalidatedGroups(names, response.headers),
    everything: undefined,
    changedTags: () => undefined,
  }
}

type OpenOptions = Pick<Contract, 'policyFor' | 'uncacheableReasonOf' | 'actsAsWrite'> & {
  readonly limits: { readonly queryParameters: number }
}

/** Any HTTP service: nothing is known of it but HTTP. */
export const createOpenContract = (
  config: Pick<OpenConfig, 'name' | 'cache'> & Partial<Pick<OpenConfig, 'errorPage'>>,
  { limits, ...contractParts }: OpenOptions,
): Contract => ({
  ...contractParts,
  name: 'open',
  rows: openRows,
  registered: openRows,
  ...createRowsInUse(findByRules(config)),
  unlisted: 'pass',
  hasIndex: false,
  hasRoutes: false,
  options: 'upstream',
  methodMeant: meaningByHeader,
  sendsMethodOverride: true,
  wrongMethod: methodNotAllowed,
  challenge: undefined,
  contentPlan: () => 'stream',
  validator: createOpenValidator({ limits }),
  declaredHeaders: [],
  secretParameters: [],
  keyHeaders: [],
  items: plainItems,
  tagger: createOpenTagger({ service: config.name }),
  readsWriteResponse: () => false,
  invalidatesTargets: true,
  errors: { ...problemShape, page: createErrorPage(config.errorPage ?? '') },
  describe: () => ({}),
})
