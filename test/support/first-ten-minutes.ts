import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { builtGateway } from './built-gateway.ts'
import { outlineOf } from './outline.ts'
import { freePort } from './ports.ts'
import { type RunningProcess, startProcess, untilReady } from './processes.ts'

/** What a person has seen: a picture of a page, or what a command printed, and its structure. */
type Sight = { readonly name: string; readonly outline: string; readonly picture?: Buffer }

const site = '/index.php/site-json/site/v2'

/** Each word of a command's output that begins a line, and its columns' titles: what a change of the command changes. */
const outlineOfText = (text: string): string =>
  text
    .split('\n')
    .map((line) =>
      line
        .replace(/\d[\d.,:/]*/g, 'N')
        .replace(/ +/g, ' ')
        .trimEnd(),
    )
    .filter((line) => line !== '')
    .join('\n')
    .concat('\n')

class Visitor {
  readonly #browser: Browser
  readonly #origin: string
  readonly #admin: string
  readonly sights: Sight[] = []

  readonly #takesPictures: boolean

  constructor(browser: Browser, takesPictures: boolean, origin: string, admin: string) {
    this.#browser = browser
    this.#takesPictures = takesPictures
    this.#origin = origin
    this.#admin = admin
  }

  async #open(url: string): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 1100, height: 820 } })
    const page = await context.newPage()
    await page.goto(url)
    return page
  }

  async #look(page: Page, name: string): Promise<void> {
    const outline = await outlineOf(page)
    if (!this.#takesPictures) this.sights.push({ name, outline })
    else this.sights.push({ name, outline, picture: await page.screenshot({ fullPage: true }) })
  }

  /** Minute one: the front page, and its three buttons. */
  async reads(): Promise<void> {
    const page = await this.#open(`${this.#origin}/`)
    await this.#look(page, 'front-page')
    for (const [button, sentence] of [
      ['Read', 'Nothing was stored yet'],
      ['Read again', 'the site got no request'],
      ['Edit', 'Trellis dropped what shows the title'],
    ] as const) {
      await page.getByRole('button', { name: button, exact: true }).click()
      await page.locator('#seen p', { hasText: sentence }).waitFor()
    }
    await this.#look(page, 'edit')
    await page.context().close()
  }

  /** A front end that sends a cookie with each read, and one that asks for drafts. */
  async losesHits(): Promise<void> {
    const read = async (path: string, headers: Record<string, string> = {}): Promise<void> => {
      await (await fetch(`${this.#origin}${site}${path}`, { headers })).arrayBuffer()
    }
    for (let time = 0; time < 30; time += 1) {
      await read('/posts?per_page=5')
      if (time % 2 === 0) await read('/posts?per_page=5', { cookie: 'theme=dark' })
      if (time % 5 === 0) await read('/pages', { authorization: 'Basic YWRtaW46dHJlbGxpcy1kZW1v' })
    }
  }

  /** What costs hits, on the page. */
  async asksForAdvice(): Promise<void> {
    const page = await this.#open(`${this.#admin}/#advice`)
    await page.locator('#advice td', { hasText: 'harmlessCookies' }).waitFor()
    await this.#look(page, 'advise')
    await page.context().close()
  }

  /** From hosts to upstreams. */
  async looksAtUpstreams(): Promise<void> {
    const page = await this.#open(`${this.#admin}/#upstreams`)
    await page.locator('#map .box.good').first().waitFor()
    await this.#look(page, 'hosts-and-upstreams')
    await page.context().close()
  }

  /** The overview, as `npm run picture` shows it under traffic. */
  async looksAtNumbers(): Promise<void> {
    const page = await this.#open(`${this.#admin}/`)
    await page.locator('#charts figure').first().waitFor()
    this.sights.push({ name: 'status', outline: await outlineOf(page) })
    await page.context().close()
  }

  /** The same in a terminal. */
  async types(env: Record<string, string>): Promise<void> {
    const run = promisify(execFile)
    const main = await builtGateway()
    const print = async (...words: string[]): Promise<string> => {
      const { stdout } = await run(process.execPath, [main, ...words], { env: { ...process.env, ...env } })
      return `$ trellis ${words.join(' ')}\n${stdout}`
    }
    const explained = await print('explain', 'GET', `${site}/posts?per_page=5`, '--demo')
    const advised = await print('advise', '--admin', this.#admin)
    this.sights.push({ name: 'terminal', outline: outlineOfText(explained + advised) })
  }
}

/** Starts the demo as its reader would, and does what a person does in the first ten minutes. */
export const firstTenMinutes = async (
  browser: Browser,
  takesPictures: boolean,
): Promise<readonly Sight[]> => {
  const ports = [await freePort(), await freePort()] as const
  const [origin, admin] = [`http://127.0.0.1:${ports[0]}`, `http://127.0.0.1:${ports[1]}`]
  const env = { TRELLIS_PORT: `${ports[0]}`, TRELLIS_ADMIN_PORT: `${ports[1]}`, TRELLIS_DRAIN_DELAY: '0s' }
  const program: RunningProcess = startProcess(process.execPath, [await builtGateway(), 'start', '--demo'], {
    env,
  })
  try {
    await untilReady(program, async () => {
      const response = await fetch(`${admin}/readyz`)
      if (!response.ok) throw new Error(`${response.status}`)
    })
    const visitor = new Visitor(browser, takesPictures, origin, admin)
    await visitor.reads()
    await visitor.losesHits()
    await visitor.asksForAdvice()
    await visitor.looksAtUpstreams()
    await visitor.looksAtNumbers()
    await visitor.types(env)
    return visitor.sights
  } finally {
    await program.stop(10_000)
  }
}
