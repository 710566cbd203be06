import { execFile as runProgram } from 'node:child_process'
import { cp, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Stack, startStack } from '../../../bench/batch-stack.ts'
import { type RedisServer, startRedisServer } from '../shared/redis-server.ts'
import { basic } from '../site-under-test.ts'
import { patientPushes } from '../wordpress/copy-companion.ts'
import { withOnly } from '../wordpress/php-extensions.ts'
import { compiledKept } from '../wordpress/site-places.ts'
import {
  type CompanionSettings,
  type Credential,
  copyPlugins,
  startWordPress,
  type TestPlugin,
} from '../wordpress/start-wordpress.ts'
import { type Intake, poll, startIntake, token } from './intake.ts'

/** A WordPress with the companion, and the gateway end that it reports to. */
export type CompanionSite = {
  readonly origin: string
  readonly intake: Intake
  /** For PDO. */
  readonly dsn: string
  /** The document root. */
  readonly site: string
  /** Runs PHP in WordPress, in its own process; `settings` goes to its environment. */
  php(
    code: string,
    settings?: Readonly<Record<string, string>>,
    flags?: readonly string[],
    longestMs?: number,
  ): Promise<PhpOutcome>
  /** Runs PHP in WordPress, in a request of its server, which costs a fifth of a process; throws unless the response is 200. */
  request(code: string, settings?: Readonly<Record<string, string>>): Promise<string>
  /** A REST request of the administrator; `through` is the origin of a gateway. */
  rest(method: string, path: string, body?: unknown, through?: string): Promise<Response>
  /** The administrator's browser. */
  readonly browser: Browser
  log(): string
  stop(): Promise<void>
}

type PreparedSite = Pick<CompanionSite, 'php' | 'site'>

export type PhpOutcome = { readonly code: number | string; readonly output: string }

const interpreter = 'php'
const here = dirname(fileURLToPath(import.meta.url))
const runner = join(here, 'run.php')

/** What WordPress, its databases, the companion and the object cache call. */
const extensions = [
  ...['ctype', 'curl', 'dom', 'fileinfo', 'iconv', 'igbinary', 'mbstring', 'mysqlnd', 'mysqli', 'pdo'],
  ...['pdo_mysql', 'pdo_sqlite', 'posix', 'redis', 'simplexml', 'sqlite3', 'tokenizer', 'xml'],
] as const

/** A script finds WordPress compiled by an earlier one: two fifths less processor time. */
const compiledOf = (site: string): readonly string[] => [
  ...['-d', 'zend_extension=opcache'],
  ...['-d', 'opcache.enable_cli=1', '-d', 'opcache.file_cache_only=1'],
  ...compiledKept(site, 'script'),
]

/** Runs PHP in a WordPress; a process that dies is an outcome as well. */
export function runPhp(
  site: string,
  code: string,
  settings: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
  longestMs = 60_000,
): Promise<PhpOutcome> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...settings }
    // Without a php.ini memory is limited.
    const settingsOfPhp = [...withOnly(...extensions), '-d', 'memory_limit=-1', '-d', 'log_errors=0']
    // Which functions a setting disables is compiled into a file.
    const cache = flags.length === 0 ? compiledOf(site) : []
    const args = [...settingsOfPhp, ...cache, ...flags, runner, site, code]
    runProgram(
      interpreter,
      args,
      { env, timeout: longestMs, maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        resolve({
          code: error === null ? 0 : (error.signal ?? error.code ?? 'unknown'),
          output: stdout + stderr,
        })
      },
    )
  })
}

/** The site of the tests with the companion in `wp-content/mu-plugins` and nothing else done. */
export async function startCompanionSite(
  settings: CompanionSettings = {},
  plugins: readonly TestPlugin[] = [],
  /** Admin addresses of gateways that it reports to as well. */
  gateways: readonly string[] = [],
): Promise<CompanionSite> {
  const intake = await startIntake()
  const all = [intake.origin, ...gateways].join(',')
  const companion = { ...patientPushes, TRELLIS_TOKEN: token, TRELLIS_GATEWAYS: all, ...settings }
  const wordpress = await startWordPress({ companion, plugins })
  const { origin, credentials, site, database, log, stop } = wordpress
  const dsn = `sqlite:${database}`
  return companionSite(intake, companion, {
    ...{ origin, site, dsn, log, stop },
    admin: credentials.admin,
    publicUrl: origin,
  })
}

/** The same on MariaDB, php-fpm and nginx; `publicUrl` is that of a gateway in front of it. */
export async function startCompanionStack(
  settings: CompanionSettings = {},
  publicUrl?: string,
  /** Admin addresses of gateways that it reports to as well. */
  gateways: readonly string[] = [],
  plugins: readonly TestPlugin[] = [],
): Promise<CompanionSite> {
  const intake = await startIntake()
  const all = [intake.origin, ...gateways].join(',')
  const companion = { ...patientPushes, TRELLIS_TOKEN: token, TRELLIS_GATEWAYS: all, ...settings }
  const stack = await startStack({
    ...{ flush: 2, opcache: true, companion },
    ...(publicUrl === undefined ? {} : { publicUrl }),
  })
  await copyPlugins(plugins, join(stack.site, 'wp-content/mu-plugins'))
  return siteOfStack(intake, companion, stack, publicUrl ?? stack.origin)
}

/** A running stack as a site of the companion's tests. */
export const siteOfStack = (
  intake: Intake,
  environment: Readonly<Record<string, string>>,
  { origin, site, socket, admin, stop }: Stack,
  publicUrl = origin,
): CompanionSite => {
  const dsn = `mysql:unix_socket=${socket};dbname=site;charset=utf8mb4`
  return companionSite(intake, environment, { origin, site, dsn, admin, publicUrl, log: () => '', stop })
}

/** Loads the companion before other must-use plugins, so that it sees all that they read. */
export const loadCompanionFirst = ({ site }: Pick<CompanionSite, 'site'>): Promise<void> => {
  const plugins = join(site, 'wp-content/mu-plugins')
  return rename(join(plugins, 'trellis.php'), join(plugins, '0-trellis.php'))
}

/** Gives a site a persistent object cache in the Redis that it returns. */
export async function addObjectCache({ site }: Pick<CompanionSite, 'site'>): Promise<RedisServer> {
  const redis = await startRedisServer()
  const contents = join(site, 'wp-content')
  await writeFile(join(contents, 'redis-port'), String(redis.port))
  await cp(join(here, 'object-cache.php'), join(contents, 'object-cache.php'))
  return redis
}

/** A PHP server may use a changed file two seconds later (opcache.revalidate_freq); a script uses it at once. */
export async function untilReloaded({ origin, php }: Pick<CompanionSite, 'origin' | 'php'>): Promise<void> {
  const { output } = await php('echo Trellis_Companion::fingerprint();')
  for (let tries = 0; (await poll(origin, 0)).fingerprint !== output; tries += 1) {
    if (tries === 100) throw new Error('the PHP server uses other files than a script')
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Makes a site the first one of a network of two blogs, whose domain has no port. */
export async function makeNetwork({ php, site }: PreparedSite): Promise<undefined> {
  const host = '127.0.0.1'
  const installed = await php(
    `foreach ( array( 'siteurl', 'home' ) as $name ) { $GLOBALS['wpdb']->update( 'wp_options', array( 'option_value' => getenv( 'PUBLIC_URL' ) ), array( 'option_name' => $name ) ); } require_once ABSPATH . 'wp-admin/includes/network.php'; require_once ABSPATH . 'wp-admin/includes/upgrade.php'; foreach ( $GLOBALS['wpdb']->tables( 'ms_global' ) as $name => $table ) { $GLOBALS['wpdb']->$name = $table; } install_network(); populate_network( 1, '${host}', 'admin@example.org', 'Network', '/', false );`,
  )
  if (installed.code !== 0) throw new Error(`${installed.code}: ${installed.output}`)
  const config = join(site, 'wp-config.php')
  const constants = `$_SERVER['HTTP_HOST'] = '${host}'; define( 'MULTISITE', true ); define( 'SUBDOMAIN_INSTALL', false ); define( 'DOMAIN_CURRENT_SITE', '${host}' ); define( 'PATH_CURRENT_SITE', '/' ); define( 'SITE_ID_CURRENT_SITE', 1 ); define( 'BLOG_ID_CURRENT_SITE', 1 );`
  const text = await readFile(config, 'utf8')
  await writeFile(
    config,
    text.replace(/define\( 'WP_(?:HOME|SITEURL)'.*\n/g, '').replace('<?php', `<?php ${constants}`),
  )
  const { output } = await php(
    `update_network_option( 1, 'using_application_passwords', 1 ); $GLOBALS['wp_rewrite']->set_permalink_structure( '/index.php/%postname%/' ); flush_rewrite_rules(); echo is_multisite() ? 'yes' : 'no';`,
  )
  if (output !== 'yes') throw new Error(output)
  const added = await php(
    `wp_insert_site( array( 'domain' => '${host}', 'path' => '/two/', 'network_id' => 1, 'user_id' => 1 ) );`,
  )
  if (added.code !== 0) throw new Error(added.output)
}

/** What makes a site one that answers much of what it shows without a statement. */
const preparations: Readonly<Record<string, (site: PreparedSite) => Promise<RedisServer | undefined>>> = {
  'object-cache': addObjectCache,
  network: makeNetwork,
}

export const kindOfSite = process.env['COMPANION_SITE']
export const prepare = kindOfSite === undefined ? undefined : preparations[kindOfSite]
if (kindOfSite !== undefined && prepare === undefined) throw new Error(`COMPANION_SITE=${kindOfSite}`)

type Started = Pick<CompanionSite, 'origin' | 'dsn' | 'site' | 'log' | 'stop'> & {
  readonly admin: Credential
  readonly publicUrl: string
}

function companionSite(
  intake: Intake,
  companion: Readonly<Record<string, string>>,
  { origin, site, dsn, admin, publicUrl, log, stop }: Started,
): CompanionSite {
  return {
    origin,
    intake,
    dsn,
    site,
    php: (code, more = {}, flags = [], longestMs = 60_000) =>
      runPhp(site, code, { PUBLIC_URL: publicUrl, ...companion, ...more }, flags, longestMs),
    request: async (code, more = {}) => {
      // As text: of a request with JSON, WordPress shows no errors.
      const headers = { 'Content-Type': 'text/plain' }
      const body = JSON.stringify([code, more])
      const response = await fetch(`${origin}/eval.php`, { method: 'POST', headers, body })
      const output = await response.text()
      if (response.status !== 200) throw new Error(`${response.status}: ${output}`)
      return output
    },
    rest: (method, path, body, through = origin) => {
      const headers: Record<string, string> = { Authorization: basic(admin) }
      if (body !== undefined) headers['Content-Type'] = 'application/json'
      const content = body === undefined ? {} : { body: JSON.stringify(body) }
      return fetch(`${through}/index.php/wp-json${path}`, { method, headers, ...content })
    },
    browser: new Browser(origin),
    log,
    stop: async () => {
      await stop()
      await intake.close()
    },
  }
}

/** A browser as far as forms of wp-admin need one: cookies, and forms with the values that they came with. */
export class Browser {
  readonly #origin: string
  readonly #cookies = new Map<string, string>()

  constructor(origin: string) {
    this.#origin = origin
  }

  async login(): Promise<void> {
    await this.get('/wp-login.php')
    const response = await this.post('/wp-login.php', {
      log: 'admin',
      pwd: 'admin-password',
      testcookie: '1',
    })
    if (response.status !== 302) throw new Error(`login: ${response.status}`)
  }

  async get(path: string): Promise<string> {
    return (await this.#open(path)).text()
  }

  /** Opens a page. Plugins lead the first visits of an administrator to screens of their own, each once. */
  async getPastWelcomes(path: string): Promise<string> {
    const seen: string[] = []
    for (let visits = 0; visits < 8; visits += 1) {
      const response = await this.#open(path)
      const text = await response.text()
      if (response.status === 200) return text
      seen.push(`${response.status} ${response.headers.get('location') ?? text.slice(0, 200)}`)
    }
    throw new Error(`${path}: ${seen.join(', ')}`)
  }

  async #open(path: string): Promise<Response> {
    const response = await fetch(this.#origin + path, { headers: this.#headers(), redirect: 'manual' })
    this.#keep(response)
    return response
  }

  /** Follows no redirect: what it leads to would be a separate request. */
  async post(path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams(headers)
    const response = await fetch(this.#origin + path, {
      method: 'POST',
      headers: this.#headers(),
      body,
      redirect: 'manual',
    })
    this.#keep(response)
    return response
  }

  /** Sends the form of a page that has this hidden or visible field, with some of its values changed. */
  async submit(page: string, having: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const html = await this.get(page)
    const forms = [...html.matchAll(/<form\b[^>]*>[\s\S]*?<\/form>/g)].map(([form]) => form)
    const form = forms.find((one) => one.includes(having))
    if (form === undefined) throw new Error(`${page} has no form with ${having}`)
    const values: Record<string, string> = {}
    for (const [input] of form.matchAll(/<input\b[^>]*>/g)) {
      const name = attribute(input, 'name')
      if (name === undefined || /type=["'](?:submit|button)/.test(input)) continue
      if (/type=["'](?:checkbox|radio)/.test(input) && !/\bchecked\b/.test(input)) continue
      values[name] = attribute(input, 'value') ?? ''
    }
    const action = attribute(form.slice(0, form.indexOf('>') + 1), 'action') ?? page
    const target = new URL(action, new URL(page, this.#origin))
    return this.post(target.pathname + target.search, { ...values, ...headers })
  }

  /** Opens the link of a page whose address has all of these texts. */
  async follow(page: string, ...having: readonly string[]): Promise<string> {
    const html = await this.get(page)
    const links = [...html.matchAll(/href=['"]([^'"]*)['"]/g)].map(([, link]) => unescapeHtml(link ?? ''))
    const link = links.find((one) => having.every((text) => one.includes(text)))
    if (link === undefined) throw new Error(`${page} has no link with ${having.join(', ')}`)
    const target = new URL(link, new URL(page, this.#origin))
    return this.get(target.pathname + target.search)
  }

  #headers(): Record<string, string> {
    return { Cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
  }

  #keep(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      this.#cookies.set(name, value)
    }
  }
}

const unescapeHtml = (text: string): string =>
  text
    .replace(/&#0?38;|&amp;/g, '&')
    .replace(/&quot;/g, '"')
    .replace(/&#0?39;/g, "'")

function attribute(tag: string, name: string): string | undefined {
  const found = new RegExp(`\\b${name}=(?:"([^"]*)"|'([^']*)')`).exec(tag)
  return found === null ? undefined : unescapeHtml(found[1] ?? found[2] ?? '')
}
