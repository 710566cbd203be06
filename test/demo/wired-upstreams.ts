import type { EmbeddedSettings, EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { startEmbeddedPlants } from '../../demo/plants.ts'
import { startEmbeddedSite } from '../../demo/site.ts'
import { plantRequests } from '../support/plants.ts'

const limits = { queryParameters: 256, jsonDepth: 64 }
const plantStore = await plantRequests({
  limits,
  limitParameter: 'limit',
  unknownParameters: 'strip',
  trackingParameters: [],
})

/** Address that the site's links begin with; nothing listens there. */
export const home = 'http://site.test'

/** Credentials of the demo's two accounts. */
export const admin = `Basic ${Buffer.from('admin:trellis-demo').toString('base64')}`
export const reader = `Basic ${Buffer.from('reader:trellis-demo').toString('base64')}`

const siteBase = { neutral: '/index.php/site-json', wordpress: '/index.php/wp-json' } as const

/** Starts the embedded site. */
export const startSite = async (
  dialect: 'neutral' | 'wordpress',
  settings: EmbeddedSettings = {},
): Promise<EmbeddedUpstream & { readonly rest: string }> => {
  const basePath = siteBase[dialect]
  const upstream = await startEmbeddedSite({ basePath, home, dialect, limits, ...settings })
  return { ...upstream, rest: upstream.origin + basePath }
}

/** Starts the embedded plant store. */
export const startPlants = (settings: EmbeddedSettings = {}): Promise<EmbeddedUpstream> =>
  startEmbeddedPlants({ basePath: '/', requests: plantStore, ...settings })

/** A response with its parsed body. */
export type Reply = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape are compared in tests
  readonly body: any
}

/** Asks once; objects are sent as JSON. */
export const ask = async (
  address: string,
  options: {
    readonly method?: string
    readonly as?: string
    readonly body?: unknown
    readonly headers?: Readonly<Record<string, string>>
  } = {},
): Promise<Reply> => {
  const { method = 'GET', as, body, headers = {} } = options
  const isJson =
    body !== undefined &&
    !(body instanceof FormData) &&
    !(body instanceof Uint8Array) &&
    typeof body !== 'string'
  const response = await fetch(address, {
    method,
    headers: {
      ...(as === undefined ? {} : { Authorization: as }),
      ...(isJson ? { 'Content-Type': 'application/json' } : {}),
      ...headers,
    },
    ...(body === undefined
      ? {}
      : { body: isJson ? JSON.stringify(body) : (body as string | FormData | Uint8Array<ArrayBuffer>) }),
  })
  const text = await response.text()
  const isBodyJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isBodyJson ? JSON.parse(text) : undefined,
  }
}
