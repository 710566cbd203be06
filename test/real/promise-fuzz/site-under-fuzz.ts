import { createHash, createHmac } from 'node:crypto'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { poll, sign, token } from '../companion/intake.ts'
import {
  type CompanionSite,
  loadCompanionFirst,
  type prepare,
  runPhp,
  untilReloaded,
} from '../companion/site.ts'
import { steadyContent } from '../differential/steady-content.ts'
import { namedInInterface } from '../hit-ratio/noise.ts'
import { inWordPressNames } from '../in-wordpress-names.ts'
import { type OneOfMany, readMany } from '../read-many.ts'
import { basic, type SiteUnderTest } from '../site-under-test.ts'
import { patientPushes } from '../wordpress/copy-companion.ts'
import { copyDatabase } from '../wordpress/copy-database.ts'
import { startWordPress, type WordPress } from '../wordpress/start-wordpress.ts'
import { namedWrites } from './quiet.ts'

/** How a gateway in front of the site is configured. */
export type Setting = { readonly names: 'same' | 'wordpress'; readonly pages: boolean }

/** The reader. The responses to an editor depend on its role. */
type Caller = 'anonymous' | 'admin' | 'editor'

/** As the seed of the site has made them. */
export const userIds: Readonly<Record<Caller, number>> = { anonymous: 0, admin: 1, editor: 2 }

/** A read of the interface: path and query in WordPress's names, with references. */
export type Read = { readonly route: string; readonly caller: Caller }

export type Reply = { readonly hit: boolean; readonly shown: string }

/** What WordPress itself answers; `total` and `pages` as its fields say them, `shown` as `Reply` has it. */
export type DirectResponse = OneOfMany & { readonly shown: string }

export type FuzzedSite = {
  readonly wordpress: WordPress
  readonly gateway: TestGateway
  readonly restRoot: string
  readonly setting: Setting
  /** Cookies of the administrator after a login through the gateway. */
  readonly cookies: string
  nonce(action: string): string
  /** Its pages' service names requests that write nothing. */
  readonly namesWrites: boolean
  /** The namespaces and keys as clients of the gateway spell them. */
  spelled(text: string): string
  /** Where every second write goes that does not pass the gateway; undefined without the companion, which reports them. */
  readonly bypass: { readonly origin: string; reported(): Promise<void> } | undefined
  /** Puts the database back to what it was when everything began, and empties the cache. */
  reset(): Promise<void>
  /** Copies the database under a name, from which `restore` puts it back; `restore` empties the cache as well. */
  save(name: string): Promise<void>
  restore(name: string): Promise<void>
  /** Empties the cache, or drops one response. */
  purge(read?: Read): Promise<void>
  throughGateway(read: Read): Promise<Reply>
  direct(read: Read): Promise<string>
  /** Many direct answers in one request. */
  directMany(reads: readonly Read[]): Promise<DirectResponse[]>
}

/** One WordPress, and a gateway for each setting, started when it is needed. */
export type FuzzedSites = {
  readonly wordpress: WordPress
  withSetting(setting: Setting): Promise<FuzzedSite>
  close(): Promise<void>
}

const day = 86_400

const md5 = (text: string): string => createHash('md5').update(text).digest('hex')

/** As `wp_create_nonce` makes them, with the secrets of wp-config.php: a form need not be read before it is sent. */
const nonceOf = (action: string, token: string): string => {
  const tick = Math.ceil(Date.now() / 1000 / (day / 2))
  const key = md5('NONCE key') + md5('NONCE salt')
  return createHmac('md5', key).update(`${tick}|${action}|1|${token}`).digest('hex').slice(-12, -2)
}

/** What differs between two responses although nothing was written: numbers of what a page has rendered so far. */
const steady = (text: string): string =>
  text
    // WordPress takes one of three hosts by chance for a user without an address.
    .replaceAll(/(https?:\\*\/\\*\/)\d(\.gravatar\.com)/g, '$1N$2')
    .replaceAll(/(data-secret=\\"|#\?secret=)\w+/g, '$1…')
    .replaceAll(
      /((?:gallery|modal|wp-container-[\w-]*?|wp-block-gallery|wp-elements|wp-block-search__input|wp-block-[\w-]*?|is-layout|calendar|[\w-]*?__responsive-[\w-]*?)-)\d+/g,
      '$1N',
    )

const shownBy = (
  status: number,
  counts: readonly (string | null)[],
  body: string,
  site: Pick<SiteUnderTest, 'restRoot' | 'names' | 'namespace'> | undefined,
  restRoot: string,
): string => {
  let content: unknown = body
  try {
    content = JSON.parse(body)
  } catch {
    // Shown as it is.
  }
  const mapped = site === undefined ? content : inWordPressNames(content, site as SiteUnderTest, restRoot)
  return steady(JSON.stringify({ status, counts, body: steadyContent(mapped) }))
}

const everythingOneHour = [
  {
    match: 'GET /**',
    // WordPress sends no-store to every user with a login.
    override: true,
    ttl: '1h',
    negativeTtl: '1h',
    scope: 'credential',
  },
]

const mounts = { same: '/index.php/wp-json', wordpress: '/index.php/site-json' } as const

const namesWrites = (names: Setting['names']): boolean => names === 'same'

/** The services of a gateway in front of the site, as its configuration names them. */
export const servicesFor = ({ origin }: WordPress, { names, pages }: Setting, changes?: object) => ({
  site: {
    ...(changes === undefined ? {} : { changes }),
    contract: 'site',
    mount: mounts[names],
    names,
    upstream: { targets: [origin], basePath: '/index.php/wp-json' },
    cache: { rules: everythingOneHour, harmlessWrites: namesWrites(names) ? namedInInterface : [] },
  },
  pages: {
    contract: 'open',
    mount: '/',
    upstream: { targets: [origin] },
    cache: {
      ...(pages ? { rules: [{ match: 'GET /index.php/**', ttl: '1h' }] } : {}),
      harmlessWrites: namesWrites(names) ? namedWrites : [],
    },
  },
})

const logIn = async (origin: string): Promise<string> => {
  const response = await fetch(`${origin}/wp-login.php`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: 'wordpress_test_cookie=WP%20Cookie%20check' },
    body: new URLSearchParams({
      log: 'admin',
      pwd: 'admin-password',
      rememberme: 'forever',
      testcookie: '1',
    }),
  })
  await response.arrayBuffer()
  const cookies = response.headers.getSetCookie().map((line) => line.split(';')[0] ?? '')
  if (!cookies.some((one) => one.startsWith('wordpress_logged_in_'))) {
    throw new Error(`the login was answered with ${response.status} and ${cookies.length} cookies`)
  }
  return cookies.join('; ')
}

/** The rows of routes that no table lists are made when the index of the upstream has come. */
const untilLearned = async (restRoot: string, prefix: string): Promise<void> => {
  for (let tries = 0; tries < 400; tries += 1) {
    const response = await fetch(`${restRoot}/${prefix}/v2/categories?per_page=0`)
    await response.arrayBuffer()
    const index = await fetch(`${restRoot}/`)
    await index.arrayBuffer()
    const isRefusedHere = response.status === 400 && !response.headers.get('cache-status')?.includes('fwd')
    if (isRefusedHere && index.ok) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the gateway has not learned the routes of the upstream')
}

const neutralNames = /\bwp_(pattern_category|pattern_sync_status)\b/g

/** Ports for the admin sides of the gateways, one for each setting. */
const adminPorts = async (): Promise<ReadonlyMap<string, number>> => {
  const ports = new Map<string, number>()
  for (const names of ['same', 'wordpress'] as const)
    for (const pages of [true, false]) ports.set(JSON.stringify({ names, pages }), await freePort())
  return ports
}

/** Signed as by the companion, each change once more: a report is given up after 300 ms, which a busy machine may need. */
const reportRows = async (wordpress: WordPress, gateway: TestGateway, after: number): Promise<number> => {
  const { rows, last, incarnation, fingerprint } = await poll(wordpress.origin, after)
  for (const { site, sequence, changes = [] } of rows) {
    const body = JSON.stringify({ incarnation, site, sequence, fingerprint, changes })
    const response = await fetch(`${gateway.adminAddress}/changes`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Trellis-Signature': sign('POST', '/changes', body) },
      body,
    })
    await response.arrayBuffer()
    if (response.status !== 200) throw new Error(`the report was answered with ${response.status}`)
  }
  return last
}

export const startFuzzedSites = async (
  withCompanion = false,
  prepared?: typeof prepare,
): Promise<FuzzedSites> => {
  const ports = await adminPorts()
  const origins = [...ports.values()].map((port) => `http://127.0.0.1:${port}`)
  const companion = { ...patientPushes, TRELLIS_TOKEN: token, TRELLIS_GATEWAYS: origins.join(',') }
  const wordpress = await startWordPress({
    plugins: ['garden-notes', 'menu-place', 'noise', 'promise-fuzz', 'quiet-writes'],
    ...(withCompanion ? { companion } : {}),
  })
  if (withCompanion) await loadCompanionFirst(wordpress)
  const { origin, site } = wordpress
  const php: CompanionSite['php'] = (code) => runPhp(site, code, { PUBLIC_URL: origin, ...companion })
  const redis = await prepared?.({ site, php })
  if (withCompanion) await untilReloaded({ origin, php })
  const copyNamed = (name: string): string => `${wordpress.database}.${name}`
  const fresh = copyNamed('fresh')
  const gateways = new Map<string, TestGateway>()
  let cookies = ''

  const gatewayFor = async (setting: Setting): Promise<TestGateway> => {
    const key = JSON.stringify(setting)
    const known = gateways.get(key)
    if (known !== undefined) return known
    const gateway = await startTestGateway(
      withCompanion
        ? {
            admin: { port: ports.get(JSON.stringify({ names: setting.names, pages: setting.pages })) ?? 0 },
            services: servicesFor(wordpress, setting, { token, poll: '1s' }),
          }
        : { services: servicesFor(wordpress, setting) },
    )
    gateways.set(key, gateway)
    await untilLearned(
      gateway.publicAddress + mounts[setting.names],
      setting.names === 'same' ? 'wp' : 'site',
    )
    if (cookies === '') {
      cookies = await logIn(gateway.publicAddress)
      await copyDatabase(wordpress.database, fresh)
    }
    return gateway
  }

  const withSetting = async (setting: Setting): Promise<FuzzedSite> => {
    const gateway = await gatewayFor(setting)
    const restRoot = gateway.publicAddress + mounts[setting.names]
    const names = setting.names === 'same' ? 'wordpress' : 'neutral'
    const namespace = names === 'wordpress' ? 'wp/v2' : 'site/v2'
    const site = { restRoot, names, namespace } as const
    const token =
      decodeURIComponent(/wordpress_logged_in_\w+=([^;]+)/.exec(cookies)?.[1] ?? '').split('|')[2] ?? ''
    const spelled = (text: string): string =>
      names === 'wordpress' ? text : text.replace(/^\/wp\/v2/, '/site/v2').replace(neutralNames, 'site_$1')
    const headersOf = ({ caller }: Read): Record<string, string> =>
      caller === 'anonymous' ? {} : { authorization: basic(wordpress.credentials[caller]) }
    const countsOf = (response: Response): (string | null)[] =>
      ['x-wp-total', 'x-wp-totalpages'].map((name) => response.headers.get(name))

    const purge = async (read?: Read): Promise<void> => {
      const response = await fetch(`${gateway.adminAddress}/cache/purge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(read === undefined ? { all: true } : { url: restRoot + spelled(read.route) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`the purge was answered with ${response.status}: ${text}`)
    }

    let reportedUntil = 0
    const putBack = async (copy: string): Promise<void> => {
      await copyDatabase(copy, wordpress.database)
      await redis?.command('FLUSHALL')
      if (withCompanion) {
        // The log was restored with the rest: its rows have other contents from here on.
        const { incarnation } = await poll(wordpress.origin, 0)
        reportedUntil = (await poll(wordpress.origin, 1_000_000_000, incarnation)).last
      }
      await purge()
    }
    const reported = async (): Promise<void> => {
      reportedUntil = await reportRows(wordpress, gateway, reportedUntil)
    }

    return {
      wordpress,
      gateway,
      restRoot,
      setting,
      cookies,
      bypass: withCompanion ? { origin: wordpress.origin, reported } : undefined,
      nonce: (action) => nonceOf(action, token),
      namesWrites: namesWrites(setting.names),
      spelled,
      purge,
      reset: () => putBack(fresh),
      save: (name) => copyDatabase(wordpress.database, copyNamed(name)),
      restore: (name) => putBack(copyNamed(name)),
      throughGateway: async (read) => {
        const response = await fetch(restRoot + spelled(read.route), { headers: headersOf(read) })
        const body = await response.text()
        const hit = response.headers.get('cache-status')?.startsWith('trellis; hit') === true
        return { hit, shown: shownBy(response.status, countsOf(response), body, site, wordpress.restRoot) }
      },
      direct: async (read) => {
        const response = await fetch(wordpress.restRoot + read.route, { headers: headersOf(read) })
        const body = await response.text()
        return shownBy(response.status, countsOf(response), body, undefined, wordpress.restRoot)
      },
      directMany: async (reads) => {
        const asked = reads.map(({ route, caller }) => ({ route, user: userIds[caller] }))
        const responses = await readMany(wordpress.origin, asked)
        return responses.map((response) => {
          const { status, total, pages, body } = response
          return { ...response, shown: shownBy(status, [total, pages], body, undefined, wordpress.restRoot) }
        })
      },
    }
  }

  return {
    wordpress,
    withSetting,
    close: async () => {
      for (const gateway of gateways.values()) await gateway.close()
      await wordpress.stop()
      await redis?.stop()
    },
  }
}
