import type { ApiFetch } from '@wordpress/api-fetch'
import { basic, type SiteUnderTest } from '../site-under-test.ts'

type ApiFetchOptions = {
  path: string
  method?: string
  data?: unknown
  body?: NonNullable<RequestInit['body']>
  headers?: Record<string, string>
}

export type ApiFetchClient = {
  /** The parsed body; rejects with the site's error body. */
  call<Body>(options: ApiFetchOptions): Promise<Body>
  /** The Response itself. */
  respond(options: ApiFetchOptions): Promise<Response>
}

/**
 * Hands `use` the client `@wordpress/api-fetch` with the site's root.
 * Its settings are global to the module, so two sites must not be used at once.
 */
export async function withApiFetch<Result>(
  site: SiteUnderTest,
  as: 'admin' | 'anonymous',
  use: (client: ApiFetchClient) => Promise<Result>,
): Promise<Result> {
  const apiFetch = await loadApiFetch()
  const root = apiFetch.createRootURLMiddleware(`${site.restRoot}/`)
  const authorization = as === 'admin' ? { Authorization: basic(site.admin) } : {}
  const credential: Parameters<ApiFetch['use']>[0] = (options, next) =>
    next({ ...options, headers: { ...options.headers, ...authorization } })
  apiFetch.use(root)
  apiFetch.use(credential)
  try {
    return await use({
      call: <Body>(options: ApiFetchOptions) => apiFetch<Body>(options),
      respond: (options) => apiFetch<Response, false>({ ...options, parse: false }),
    })
  } finally {
    apiFetch.unregister(root)
    apiFetch.unregister(credential)
  }
}

/** The client expects a browser; it takes no more of it than this. */
async function loadApiFetch(): Promise<ApiFetch> {
  Object.assign(globalThis, {
    window: globalThis,
    document: { addEventListener: () => {}, body: null, querySelector: () => null },
  })
  // The types describe a CommonJS module, what Node loads is an ES module: `default` is the function itself.
  const loaded = (await import('@wordpress/api-fetch')) as unknown as { default: ApiFetch }
  return loaded.default
}
