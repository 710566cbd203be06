import { mkdir } from 'node:fs/promises'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { startBrowser } from '../support/browser.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'

const folder = process.env['TRELLIS_SCREENSHOTS']

type Violation = { readonly id: string; readonly nodes: readonly { html: string }[] }
type Clipboard = { readonly clipboard: { readText(): Promise<string> } }

describeWith('chromium', 'the front page of the demo in a browser', () => {
  let program: RunningProcess
  let origin: string
  let adminOrigin: string
  let browser: Browser
  const complaints: string[] = []

  const open = async (options: BrowserContextOptions = {}): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options })
    const page = await context.newPage()
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(`${origin}/`)
    return page
  }

  /** Clicks a button, and waits for what it shows. */
  const click = async (page: Page, name: string, sentence: string | RegExp): Promise<string[]> => {
    await page.getByRole('button', { name, exact: true }).click()
    await page.locator('#seen p', { hasText: sentence }).waitFor({ timeout: 10_000 })
    return page.locator('#seen li .from').allTextContents()
  }

  const purgeAll = async (): Promise<void> => {
    const headers = { 'content-type': 'application/json' }
    await fetch(`${adminOrigin}/cache/purge`, { method: 'POST', headers, body: '{"all":true}' })
  }

  beforeAll(async () => {
    const ports = [await freePort(), await freePort()]
    origin = `http://127.0.0.1:${ports[0]}`
    adminOrigin = `http://127.0.0.1:${ports[1]}`
    program = startProcess(process.execPath, [await builtGateway(), 'start', '--demo'], {
      env: { TRELLIS_PORT: `${ports[0]}`, TRELLIS_ADMIN_PORT: `${ports[1]}`, TRELLIS_DRAIN_DELAY: '0s' },
    })
    await untilReady(program, async () => {
      const response = await fetch(`${adminOrigin}/readyz`)
      if (!response.ok) throw new Error(`${response.status}`)
    })
    browser = await startBrowser()
  })
  beforeEach(purgeAll)
  afterAll(async () => {
    await browser?.close()
    await program?.stop(10_000)
  })

  test('reads go to the site, then come from the cache, and an edit drops what shows it', async () => {
    const page = await open()
    const site = 'from the site'
    const cache = 'from the cache'
    expect(await click(page, 'Read', 'Nothing was stored yet')).toEqual([site, site, site])
    expect(await click(page, 'Read again', 'the site got no request')).toEqual([cache, cache, cache])
    const dropped =
      'Trellis dropped what shows the title: the post and the list of posts. It kept the other post.'
    expect(await click(page, 'Edit', dropped)).toEqual(['written', site, site, cache])
    const first = page.locator('#seen li').first()
    expect(await first.textContent()).toMatch(
      /POST \/site\/v2\/posts\/57.*Cache-Status: trellis; fwd=method.* ms/,
    )
    await page.context().close()
  })

  test('an edit before anything is stored says so', async () => {
    const page = await open()
    await click(page, 'Edit', 'Nothing was stored before the edit')
    await page.context().close()
  })

  test('a gateway that has ended is said in words', async () => {
    const page = await open()
    await page.route('**/site-json/**', (route) => route.abort())
    await click(page, 'Read', 'Trellis does not answer')
    complaints.splice(0)
    await page.context().close()
  })

  test('commands can be copied whole', async () => {
    const page = await open({ permissions: ['clipboard-read', 'clipboard-write'] })
    const commands = await page.locator('.command pre').allTextContents()
    expect(commands).toHaveLength(5)
    for (const [at, command] of commands.entries()) {
      const copy = page.locator('.command button').nth(at)
      await copy.click()
      await page.locator('.command').nth(at).getByText('Copied').waitFor()
      const read = () => (globalThis as unknown as { navigator: Clipboard }).navigator.clipboard.readText()
      expect(await page.evaluate(read)).toBe(command)
    }
    await page.context().close()
  })

  const looks: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['narrow', { viewport: { width: 390, height: 844 } }],
    ['narrow-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
  ]

  const some = rowsOf(looks, 3)
  test.each(some)('%s: nothing is cut, nothing moves, and axe finds nothing', async (name, options) => {
    const page = await open({ ...options, bypassCSP: true })
    const top = () => page.locator('h2').first().boundingBox()
    const before = await top()
    await click(page, 'Read', 'stored')
    await click(page, 'Edit', 'Before the edit was acknowledged')
    const cut = await page.evaluate(
      `[...document.querySelectorAll('body, pre, code')].filter((each) => each.scrollWidth > Math.ceil(each.getBoundingClientRect().width) + 1).length`,
    )
    expect(cut).toBe(0)
    if (name === 'light') expect(await top()).toEqual(before)
    await page.evaluate(axe.source)
    const violations = (await page.evaluate('axe.run().then(({ violations }) => violations)')) as Violation[]
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    if (folder !== undefined) {
      await mkdir(folder, { recursive: true })
      await page.screenshot({ path: `${folder}/demo-${name}.png`, fullPage: true })
    }
    await page.context().close()
  })

  test('the browser complained of nothing, with the policy of the page', () => {
    expect(complaints).toEqual([])
  })
})
