import type { Credential } from './wordpress/start-wordpress.ts'

/** One way to reach the same WordPress: by its own address, or through a gateway under either kind of names. */
export type SiteUnderTest = {
  readonly title: string
  /** REST root as its clients know it, no slash at the end. */
  readonly restRoot: string
  readonly names: 'wordpress' | 'neutral'
  /** `wp/v2` or what stands for it. */
  readonly namespace: string
  readonly throughGateway: boolean
  readonly admin: Credential
}

/** Value of the Authorization field. */
export function basic(credential: Credential): string {
  return `Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`
}

/** A GET without any field that identifies the caller. */
export async function getAnonymously(site: SiteUnderTest, pathAndQuery: string): Promise<Response> {
  return fetch(`${site.restRoot}/${pathAndQuery}`)
}
