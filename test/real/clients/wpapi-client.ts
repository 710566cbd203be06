import WPAPI from 'wpapi'
import type { SiteUnderTest } from '../site-under-test.ts'

type WpapiRequest = ReturnType<WPAPI['root']>

/** The client `wpapi` as a user of this site sets it up. */
export type WpapiClient = {
  /** A request to one of the namespace's collections: `posts`, `media` … */
  collection(name: string): WpapiRequest
  root(path: string): WpapiRequest
}

/**
 * wpapi contains the routes of `wp/v2`. Under other names it gets them from the discovery document, as its documentation advises,
 * except those patterns that its parser cannot read (templates, themes).
 */
export async function createWpapiClient(
  site: SiteUnderTest,
  as: 'admin' | 'anonymous',
): Promise<WpapiClient> {
  const options = {
    endpoint: site.restRoot,
    ...(as === 'admin' ? site.admin : {}),
    ...(site.names === 'neutral' ? { routes: await readableRoutes(site.restRoot) } : {}),
  }
  const client = new WPAPI(options)
  return {
    collection(name) {
      const request = client.namespace(site.namespace)[name]?.()
      if (request === undefined) throw new Error(`wpapi knows no collection ${name} in ${site.namespace}`)
      return request
    },
    root: (path) => client.root(path),
  }
}

async function readableRoutes(restRoot: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${restRoot}/`)
  const index = (await response.json()) as { routes: Record<string, unknown> }
  return Object.fromEntries(Object.entries(index.routes).filter((entry) => isReadable(restRoot, entry)))
}

function isReadable(endpoint: string, [pattern, route]: [string, unknown]): boolean {
  try {
    new WPAPI({ endpoint, routes: { [pattern]: route } })
    return true
  } catch {
    return false
  }
}
