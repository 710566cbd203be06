import { namedInPages } from '../hit-ratio/noise.ts'
import { oneOf, text } from './contents.ts'
import type { Pools } from './pools.ts'
import type { Random } from './random.ts'
import type { Sending } from './write.ts'

type Make = (id: string, random: Random) => Omit<Extract<Sending, { door: 'raw' }>, 'door'>

const ajax = '/wp-admin/admin-ajax.php'
const form = 'application/x-www-form-urlencoded'
const json = 'application/json'

/** References stay as they are until the request is sent. */
const formOf = (headers: Readonly<Record<string, string>>): string =>
  String(new URLSearchParams(headers)).replaceAll(/%7B([\w-]+)%7D/g, '{$1}')

const beat = (more: Readonly<Record<string, string>>, screen = 'post') => ({
  path: ajax,
  type: form,
  body: formOf({
    ...more,
    interval: '10',
    _nonce: '{heartbeat-nonce}',
    action: 'heartbeat',
    screen_id: screen,
    has_focus: 'true',
  }),
})

const login = (more: Readonly<Record<string, string>>) => ({
  path: '/wp-login.php',
  type: form,
  body: formOf({ log: 'admin', pwd: 'wrong', 'wp-submit': 'Log In', ...more }),
})

const shop = (path: string, body: string, type = form) => ({ path, type, body })

const graphql = (body: unknown, path = '/graphql') => ({ path, type: json, body: JSON.stringify(body) })

const parts = (operations: unknown) => ({
  path: '/graphql',
  type: 'multipart/form-data; boundary=a',
  body: `--a\r\nContent-Disposition: form-data; name="operations"\r\n\r\n${JSON.stringify(operations)}\r\n--a--\r\n`,
})

const change = 'mutation B { b }'

/** `always`: the plugin writes whatever the request says, so that the administrator must not name such requests. */
const requests: Readonly<Record<string, Make>> = {
  'heartbeat.lock': (id) =>
    beat({ 'data[wp-refresh-post-lock][post_id]': id, 'data[wp-refresh-post-lock][lock]': '1:1' }),
  'heartbeat.plain': () => beat({}),
  'heartbeat.autosave': (id, random) =>
    beat({
      'data[wp_autosave][post_id]': id,
      'data[wp_autosave][post_type]': 'post',
      'data[wp_autosave][post_title]': text(random),
      'data[wp_autosave][content]': text(random),
    }),
  'heartbeat.plugin': (id) => beat({ 'data[acme]': id }),
  'heartbeat.plugin-and-lock': (id) =>
    beat({ 'data[wp-refresh-post-lock][post_id]': id, 'd%61ta[acme]': id, 'data[acme]': id }),
  'heartbeat.always': (id) => beat({}, `acme-always-${id}`),
  'login.failed': () => login({}),
  'login.code': (id) => login({ authcode: id }),
  'login.always': (id) => login({ redirect_to: `acme-always-${id}` }),
  'login.done': () => login({ pwd: 'admin-password' }),
  'shop.fragments': () => shop('/?wc-ajax=fragments', 'time=1'),
  'shop.session': () => shop('/?wc-ajax=get_refreshed_fragments', 'time=1'),
  'shop.checkout': (id) => shop('/?wc-ajax=checkout', `id=${id}`),
  'shop.hidden': (id) => shop('/?wc-ajax=fragments', `wc-ajax=checkout&id=${id}`),
  'shop.encoded': (id) => shop('/?wc-ajax=fragments', `%77c-%61jax=checkout&id=${id}`),
  'shop.query': (id) => shop(`/?wc-ajax=fragments&wc-ajax=checkout&id=${id}`, ''),
  'shop.parts': (id) =>
    shop(
      '/?wc-ajax=fragments',
      ['wc-ajax', 'checkout', 'id', id]
        .reduce(
          (body, value, at) =>
            at % 2 === 0
              ? `${body}--a\r\nContent-Disposition: form-data; name="${value}"\r\n\r\n`
              : `${body}${value}\r\n`,
          '',
        )
        .concat('--a--\r\n'),
      'multipart/form-data; boundary=a',
    ),
  'graphql.query': (id) => graphql({ query: 'query A($id: ID) { a }', variables: { id } }),
  'graphql.queries': (id) =>
    graphql({ query: 'query A { a } query B { b }', operationName: 'B', variables: { id } }),
  'graphql.mutation': (id) => graphql({ query: change, variables: { id } }),
  'graphql.operation': (id) =>
    graphql({ query: `query A { a } ${change}`, operationName: 'B', variables: { id } }),
  'graphql.comment': (id) =>
    graphql({ query: `# query A {\n${change}\nquery A { a }`, operationName: 'B', variables: { id } }),
  'graphql.string': (id) =>
    graphql({ query: `query A { a(b: """ } \\""" """) } ${change}`, operationName: 'B', variables: { id } }),
  'graphql.list': (id) => graphql([{ query: '{ a }' }, { query: change, variables: { id } }]),
  'graphql.stored': (id) => graphql({ queryId: 'x', variables: { id } }),
  'graphql.stored-and-text': (id) => graphql({ query: '{ a }', queryId: 'x', variables: { id } }),
  'graphql.stored-in-url': (id) => graphql({ query: '{ a }', variables: { id } }, '/graphql?queryId=x'),
  'graphql.persisted': (id) =>
    graphql({ query: '{ a }', extensions: { persistedQuery: { sha256Hash: 'x' } }, variables: { id } }),
  'graphql.twice': (id) => ({
    path: '/graphql',
    type: json,
    body: `{"query":"{ a }","query":"\\u006dutation B { b }","variables":{"id":${JSON.stringify(id)}}}`,
  }),
  'graphql.form': (id) => shop('/graphql', `${formOf({ query: change })}&variables={"id":"${id}"}`),
  'graphql.text': (id) => shop(`/graphql?id=${id}`, change, 'application/graphql'),
  'graphql.parts': (id) => parts({ query: change, variables: { id } }),
}

export const quietKinds: readonly string[] = Object.keys(requests).map((kind) => `quiet.${kind}`)

export const quietSending = (kind: string, pools: Pools, random: Random): Sending | undefined => {
  const make = requests[kind.slice('quiet.'.length)]
  return make === undefined || !kind.startsWith('quiet.')
    ? undefined
    : { door: 'raw', ...make(oneOf(pools, 'posts', random), random) }
}

/** What the administrator of a site with the plugin of these tests says; `always` would make it wrong. */
export const namedWrites = [...namedInPages, 'POST /?wc-ajax=fragments']
