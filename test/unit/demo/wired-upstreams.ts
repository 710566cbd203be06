import type { EmbeddedSettings, EmbeddedUpstream } from '../../../demo/embedded-server.ts'
import { startEmbeddedPlants } from '../../../demo/plants.ts'
import { startEmbeddedSite } from '../../../demo/site.ts'
import { plantRows } from '../../../src/contracts/plants/route-table.ts'
import { keyNames, namespaceNames, segmentNames } from '../../../src/contracts/site/names.ts'
import { siteRows } from '../../../src/contracts/site/route-table.ts'
import { createNameSwap } from '../../../src/request/name-swap.ts'
import { createPlantsValidator } from '../../../src/request/plants-validator.ts'
import { createRouter } from '../../../src/request/router.ts'
import { mapRows } from '../../../src/request/row-names.ts'
import { createSiteValidator } from '../../../src/request/site-validator.ts'

const limits = { queryParameters: 256, jsonDepth: 64 }
const reading = { limits, unknownParameters: 'strip', trackingParameters: [] } as const

/** Address that the site's links begin with; nothing listens there. */
export const home = 'http://site.test'

/** Credentials of the demo's two accounts. */
export const admin = `Basic ${Buffer.from('admin:trellis-demo').toString('base64')}`
export const reader = `Basic ${Buffer.from('reader:trellis-demo').toString('base64')}`

const siteBase = { neutral: '/index.php/site-json', wordpress: '/index.php/wp-json' } as const

/** Starts the embedded site with the gateway's own router and validator. */
export const startSite = async (
  dialect: 'neutral' | 'wordpress',
  settings: EmbeddedSettings = {},
): Promise<EmbeddedUpstream & { readonly rest: string }> => {
  const rows =
    dialect === 'neutral'
      ? siteRows
      : mapRows(
          siteRows,
          createNameSwap({ namespaces: namespaceNames, keys: keyNames, segments: segmentNames }),
        )
  const basePath = siteBase[dialect]
  const { find } = createRouter(rows)
  const { validate } = createSiteValidator(reading)
  const upstream = await startEmbeddedSite({ basePath, home, dialect, rows, find, validate, ...settings })
  return { ...upstream, rest: upstream.origin + basePath }
}

/** Starts the embedded plant store with the gateway's own router and validator. */
export const startPlants = (settings: EmbeddedSettings = {}): Promise<EmbeddedUpstream> => {
  const { find } = createRouter(plantRows({ limitParameter: 'limit' }))
  const { validate } = createPlantsValidator({ ...reading, limitParameter: 'limit' })
  return startEmbeddedPlants({ basePath: '/', find, validate, ...settings })
}

/** An answer with its parsed body. */
export type Reply = {
  readonly status: number
  readonly fields: Headers
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
    readonly fields?: Readonly<Record<string, string>>
  } = {},
): Promise<Reply> => {
  const { method = 'GET', as, body, fields = {} } = options
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
      ...fields,
    },
    ...(body === undefined
      ? {}
      : { body: isJson ? JSON.stringify(body) : (body as string | FormData | Uint8Array<ArrayBuffer>) }),
  })
  const text = await response.text()
  const isBodyJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
  return {
    status: response.status,
    fields: response.headers,
    text,
    body: isBodyJson ? JSON.parse(text) : undefined,
  }
}
