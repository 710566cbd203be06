import type { Call, Resource, SiteResponse, Values } from './call.ts'
import { type Dispatcher, faultResponse, type Incoming, noRoute } from './dispatcher.ts'
import { phpMap } from './fields.ts'
import { SiteFault } from './site-fault.ts'

type ItemResponse = { readonly body: unknown; readonly status: number; readonly headers: unknown }

const shown = (response: SiteResponse): ItemResponse => ({
  body: response.body,
  status: response.status,
  headers: phpMap(response.headers),
})

const parsePathFailed = new SiteFault(400, 'parse_path_failed', 'Could not parse the path.')
const notAllowed = new SiteFault(
  400,
  'rest_batch_not_allowed',
  'The requested route does not support batch requests.',
)

/** Path and query of an item; the host of an absolute URL means nothing, a fragment is dropped. */
const splitPath = (path: string): { path: string; query: string } | undefined => {
  if (/^[a-z]{1,10}:\/\/\//i.test(path)) return undefined
  const withoutHost = path.replace(/^https?:\/\/[^/?#]{1,200}/i, '')
  const [beforeFragment = ''] = withoutHost.split('#', 1)
  const mark = beforeFragment.indexOf('?')
  return mark === -1
    ? { path: beforeFragment, query: '' }
    : { path: beforeFragment.slice(0, mark), query: beforeFragment.slice(mark + 1) }
}

const incomingOf = (call: Call, item: Values): Incoming | undefined => {
  const target = splitPath(typeof item['path'] === 'string' ? item['path'] : '')
  if (target === undefined) return undefined
  const body = item['body'] ?? {}
  return {
    ...target,
    method: typeof item['method'] === 'string' ? item['method'] : 'POST',
    // Headers of an item change neither the caller nor the method, so none is taken over.
    fields: { 'content-type': 'application/json' },
    content: Buffer.from(JSON.stringify(body)),
    caller: call.caller,
  }
}

const refusalOf = (dispatcher: Dispatcher, incoming: Incoming | undefined): SiteResponse | undefined => {
  if (incoming === undefined) return faultResponse(parsePathFailed)
  const { method, path } = incoming
  // Unlike that of a single request, an item's path must be exact at both ends.
  const exact = path.startsWith('/') && (path === '/' || !path.endsWith('/'))
  const matched = exact ? dispatcher.match(method, path) : undefined
  if (matched === undefined) return faultResponse(noRoute)
  if (matched.endpoint.allowBatch !== true) {
    return { ...faultResponse(notAllowed), headers: dispatcher.allow(incoming) }
  }
  return dispatcher.refusal(incoming)
}

/** Runs several writes one after the other; each sees what the ones before it did. */
export const batchResource = (dispatcher: () => Dispatcher): Resource => ({
  permit: () => undefined,
  run: (call) => {
    const items = (Array.isArray(call.args['requests']) ? call.args['requests'] : []) as Values[]
    const incoming = items.map((item) => incomingOf(call, item))
    const refusals = incoming.map((one) => refusalOf(dispatcher(), one))
    if (call.args['validation'] === 'require-all-validate' && refusals.some((one) => one !== undefined)) {
      const responses = refusals.map((one) => (one === undefined ? null : shown({ ...one, headers: {} })))
      return { status: 207, headers: {}, body: { failed: 'validation', responses } }
    }
    const responses = incoming.map((one, index) => {
      const response =
        refusals[index] ?? (one === undefined ? faultResponse(noRoute) : dispatcher().response(one))
      return shown(response)
    })
    return { status: 207, headers: {}, body: { responses } }
  },
})
