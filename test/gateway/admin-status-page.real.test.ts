import { mkdir } from 'node:fs/promises'
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { startBrowser } from '../support/browser.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'

const mount = '/index.php/site-json/site/v2'
const folder = process.env['TRELLIS_SCREENSHOTS']

type HasRects = { getClientRects(): readonly unknown[] }
type Violation = { readonly id: string; readonly impact: string; readonly nodes: readonly { html: string }[] }

describeWith('chromium', 'the status page in a browser', () => {
  let origin: Origin
  let gateway: TestGateway
  let browser: Browser
  const complaints: string[] = []

  const views = ['overview', 'advice', 'cache', 'upstreams', 'errors', 'tools'] as const

  const open = async (view: (typeof views)[number], options: BrowserContextOptions = {}): Promise<Page> => {
    // The policy of the page must not stop the test from looking: axe is put in from outside.
    const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, ...options })
    const page = await context.newPage()
    page.on('console', (message) => {
      // What Chromium finds wrong with the document's elements it only says at its lowest level.
      const complains = ['error', 'warning'].includes(message.type()) || message.text().startsWith('[DOM]')
      if (complains) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(`${gateway.adminAddress}/#${view}`)
    await page.locator('#upstreams tbody tr').first().waitFor({ state: 'attached' })
    return page
  }

  const get = (path: string): Promise<number> =>
    fetch(`${gateway.publicAddress}${path}`).then(async (response) => {
      await response.arrayBuffer()
      return response.status
    })

  const shot = async (page: Page, name: string): Promise<void> => {
    if (folder === undefined) return
    await mkdir(folder, { recursive: true })
    await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true })
  }

  beforeAll(async () => {
    origin = await startOrigin((_request, wire) =>
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' }),
    )
    gateway = await startTestGateway({
      services: {
        site: siteService(origin.origin, {
          upstream: {
            targets: [origin.origin],
            basePath: '/index.php/wp-json',
            eject: { after: 2, maxShare: 1 },
          },
          cache: {
            harmlessWrites: ['POST /acme/v1/ping'],
            rules: [
              { match: 'GET /site/v2/**', ttl: '1h' },
              { match: 'GET /site/v2/posts', ttl: '1m' },
            ],
          },
        }),
      },
    })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.close()
    await origin?.close()
  })

  test('shows what was done: requests, hits, refusals, upstreams', async () => {
    const page = await open('overview')
    await shot(page, 'status-idle')
    for (let time = 0; time < 20; time += 1) expect(await get(`${mount}/posts`)).toBe(200)
    expect(await get(`${mount}/posts?per_page=none`)).toBe(400)
    const row = page.locator('#routes tbody tr', { hasText: '/site/v2/posts' }).first()
    await row.filter({ hasText: '21' }).waitFor()
    expect(await row.locator('td, th').allTextContents()).toMatchObject({
      0: '/site/v2/posts',
      1: 'site',
      3: '21',
      4: '90.5 %',
      5: '5 ms',
      7: '0',
    })
    expect(await page.locator('#refused').textContent()).toContain('rest_invalid_param')
    expect(await page.locator('#upstreams').textContent()).toContain(origin.origin)
    expect(await page.locator('#verdict').textContent()).toBe('Ready')
    if (folder !== undefined) {
      const until = performance.now() + 12_000
      const readers = Array.from({ length: 8 }, async (_, reader) => {
        for (let time = 0; performance.now() < until; time += 1) {
          await get(
            `${mount}/${time % 7 === 0 ? 'pages' : 'posts'}?page=${(time % 9) + 1}&per_page=${reader + 1}`,
          )
        }
      })
      await Promise.all(readers)
      await shot(page, 'status-under-load')
    }
    await page.context().close()
  })

  test('shows writes that dropped nothing, with the reason', async () => {
    const page = await open('cache')
    const ping = `${gateway.publicAddress}/index.php/site-json/acme/v1/ping`
    const response = await fetch(ping, { method: 'POST' })
    const row = page.locator('#kept tbody tr').first()
    await row.filter({ hasText: response.headers.get('x-request-id') ?? 'none' }).waitFor()
    expect(await row.textContent()).toContain('cache.harmlessWrites')
    expect(await page.locator('#invalidations').textContent()).toContain('No write and no purge yet.')
    await shot(page, 'status-kept')
    await page.context().close()
  })

  test('shows the URLs of the responses that a write dropped', async () => {
    await get(`${mount}/posts?per_page=3`)
    const page = await open('cache')
    const write = await fetch(`${gateway.publicAddress}${mount}/posts`, { method: 'POST' })
    const row = page.locator('#invalidations tbody tr', {
      hasText: write.headers.get('x-request-id') ?? 'none',
    })
    await row.filter({ hasText: `${mount}/posts?` }).waitFor()
    await page.context().close()
  })

  test('shows numbers at its first sight, before two reports can be compared', async () => {
    await expect
      .poll(async () => {
        await get(`${mount}/posts`)
        const history = await fetch(`${gateway.adminAddress}/history`)
        const { requests } = (await history.json()) as { requests: readonly (number | null)[] }
        return Math.max(0, ...requests.map((count) => count ?? 0))
      })
      .toBeGreaterThan(0)
    const page = await open('overview')
    const [hitRatio, , time] = await page.locator('#main-numbers .value').allTextContents()
    const [requests] = await page.locator('#numbers .value').allTextContents()
    expect([hitRatio, time, requests]).toEqual([
      expect.stringMatching(/^[1-9][\d.]* %$/),
      expect.stringMatching(/\d (?:µs|ms)$/),
      expect.stringMatching(/^(?:[1-9]\d*|0\.[1-9]|\d+\.\d+) \/(?:s|min)$/),
    ])
    expect(await page.locator('#history-title').textContent()).toMatch(/^The last .*, since the start$/)
    await page.getByText('The charts as a table').click()
    await page.locator('#history-rows tbody tr').first().waitFor()
    await page.context().close()
  })

  test('is small, and nothing on it jumps while it loads', async () => {
    for (const width of [1280, 390]) {
      const context = await browser.newContext({ viewport: { width, height: 900 } })
      const page = await context.newPage()
      let bytes = 0
      page.on('requestfinished', async (request) => {
        const { responseBodySize, responseHeadersSize } = await request.sizes()
        bytes += responseBodySize + responseHeadersSize
      })
      await page.addInitScript(`
        globalThis.shift = 0
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) globalThis.shift += entry.value
        }).observe({ type: 'layout-shift', buffered: true })`)
      await page.goto(`${gateway.adminAddress}/`)
      await page.locator('#charts figure').first().waitFor()
      expect(bytes).toBeGreaterThan(5_000)
      expect(bytes).toBeLessThan(60_000)
      const polled = page.waitForResponse('**/status')
      await get(`${mount}/posts`)
      await polled
      await page.locator('#routes tbody tr').first().waitFor()
      // A quarter of what counts as good (0.1).
      expect(await page.evaluate('globalThis.shift')).toBeLessThan(0.025)
      await context.close()
    }
  })

  test('shows warnings of the configuration, the last hour, and refused requests with their ids', async () => {
    const page = await open('overview')
    expect(await page.locator('#notices').textContent()).toContain('services.site.cache.rules[1].match')
    expect(await page.locator('#charts figure').count()).toBe(4)
    await page.locator('#history-service').selectOption('site')
    const response = await fetch(`${gateway.publicAddress}${mount}/posts?per_page=0`)
    await page.getByRole('link', { name: 'Errors' }).click()
    const row = page.locator('#refusals tbody tr').first()
    await row.filter({ hasText: response.headers.get('x-request-id') ?? 'none' }).waitFor()
    expect(await row.textContent()).toContain('rest_invalid_param')
    await page.context().close()
  })

  test('lists stored responses in pages, and filters them', async () => {
    for (let number = 1; number <= 30; number += 1) await get(`${mount}/tags?page=${number}`)
    const page = await open('cache')
    expect(await page.locator('#entries-next').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'List' }).click()
    await page.locator('#entries-filter').fill('v2/tags')
    await page.getByText(/^30 stored responses of \d+, page 1 of 2$/).waitFor()
    expect(await page.locator('#entries tbody tr').count()).toBe(25)
    await page.getByRole('button', { name: 'Next' }).click()
    expect(await page.locator('#entries tbody tr').count()).toBe(5)
    await shot(page, 'status-entries')
    await page.locator('#entries tbody a').first().click()
    await page.locator('#explanation').filter({ hasText: '/site/v2/tags' }).waitFor()
    await page.goBack()
    await page.locator('#entries-filter').fill('absent')
    await page.getByText('Nothing matches the filter.').waitFor()
    await page.context().close()
  })

  test('changes the level of the log for a time', async () => {
    const page = await open('tools')
    await page.getByText('silent, as configured').waitFor()
    await page.locator('#log-level [name=level]').selectOption('fatal')
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByText(/^fatal until \d\d:\d\d:\d\d; configured: silent$/).waitFor()
    await page.context().close()
  })

  test('purges what was counted, when confirmed and only then', async () => {
    const page = await open('tools')
    await get(`${mount}/posts`)
    const entries = await gateway.metric('trellis_cache_entries')
    const what = entries === 1 ? '1 stored response' : `${entries} stored responses`
    const value = page.locator('#purge [name=value]')
    expect(await value.isEnabled()).toBe(true)
    await page.locator('#purge [name=by]').selectOption('all')
    expect(await page.locator('#purge button').getAttribute('class')).toContain('danger')
    expect(await value.isEnabled()).toBe(false)
    const count = page.getByRole('button', { name: /Count/ })
    await count.click()
    await page.locator('#confirm').waitFor()
    expect(await page.locator('#confirm').textContent()).toContain(`Remove ${what}?`)
    await page.getByRole('button', { name: 'No' }).click()
    expect(await gateway.metric('trellis_cache_entries')).toBe(entries)
    await count.click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByText(`Removed: ${what}.`).waitFor()
    expect(await gateway.metric('trellis_cache_entries')).toBe(0)
    await page.locator('#purge [name=by]').selectOption('prefix')
    await value.fill('nowhere')
    await count.click()
    await page.getByText(/^Refused \(400\)/).waitFor()
    // The browser itself writes down that a response was a 400.
    await expect.poll(() => complaints.some((text) => text.includes('400'))).toBe(true)
    complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes('400')))
    await page.context().close()
  })

  test('asks for no token where none is needed', async () => {
    const page = await open('tools')
    expect(await page.locator('#credential-section').isVisible()).toBe(false)
    await page.context().close()
  })

  test('takes the token with Enter without sending the form anywhere', async () => {
    const page = await open('tools')
    await page.route('**/log-level', (route) => route.fulfill({ status: 401, json: {} }))
    await page.reload()
    await page.locator('#credential-section').waitFor()
    await page.locator('#token').fill('anything')
    await page.keyboard.press('Enter')
    await page.getByText('The token is sent with each request').waitFor()
    expect(page.url()).toBe(`${gateway.adminAddress}/#tools`)
    // The browser itself writes down that a response was a 401, once for each question of the page.
    await expect.poll(() => complaints.some((text) => text.includes('401'))).toBe(true)
    await page.context().close()
    complaints.splice(0, complaints.length, ...complaints.filter((text) => !text.includes('401')))
    expect(complaints).toEqual([])
  })

  test('explains a request, by keyboard alone', async () => {
    const page = await open('tools')
    await page.locator('#explain [name=method]').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.type(`${mount}/posts?per_page=10&page=1`)
    await page.keyboard.press('Enter')
    await page.locator('#explanation').filter({ hasText: 'Its response comes from the cache' }).waitFor()
    expect(await page.locator('#explanation').isVisible()).toBe(true)
    expect(await page.locator('#explained').textContent()).not.toContain('{')
    await page.keyboard.press('Home')
    await page.context().close()
  })

  const screens = [
    ['light', 1280],
    ['light', 390],
    ['dark', 1280],
    ['dark', 390],
  ] as const
  describe.each(rowsOf(screens, 3))('%s, %i pixels wide', (colorScheme, width) => {
    test('axe finds nothing in any view', async () => {
      const page = await open('overview', {
        colorScheme,
        bypassCSP: true,
        viewport: { width, height: 900 },
      })
      await page.addScriptTag({ content: axe.source })
      await page.getByText('The charts as a table').click()
      const tiles = await page
        .locator('.tile')
        .evaluateAll(
          (all) => new Set(all.map((tile) => (tile as unknown as { offsetTop: number }).offsetTop)).size,
        )
      expect(tiles).toBeLessThanOrEqual(5)
      for (const view of views) {
        await page.locator(`#views a[href="#${view}"]`).click()
        await page.locator(`main[data-shown=${view}]`).waitFor()
        const violations = await page.evaluate(async () => {
          const { axe: tool } = globalThis as unknown as {
            axe: { run(): Promise<{ violations: readonly Violation[] }> }
          }
          return (await tool.run()).violations
        })
        expect(
          violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
        ).toEqual([])
        const [inner, outer] = (await page.evaluate(
          'Promise.resolve([document.documentElement.scrollWidth, innerWidth])',
        )) as [number, number]
        expect(inner).toBeLessThanOrEqual(outer)
        const parts = await page
          .locator('tbody td')
          .evaluateAll((all) =>
            Math.max(0, ...all.map((cell) => (cell as unknown as HasRects).getClientRects().length)),
          )
        expect(parts, `boxes of a cell in ${view}`).toBeLessThanOrEqual(1)
        await shot(page, `status-${view}-${colorScheme}-${width}`)
      }
      await page.context().close()
    })
  })

  test('says which upstream is down, and when the gateway itself cannot be reached', async () => {
    const page = await open('upstreams')
    origin.script = (_request, wire) => wire.reset()
    for (let time = 0; time < 6; time += 1) await get(`${mount}/pages?page=${time + 1}`)
    await page.locator('#upstreams', { hasText: /since \d\d:\d\d:\d\d: \d+ requests failed/ }).waitFor()
    await page.locator('#map .box.bad', { hasText: origin.origin }).waitFor()
    await page.locator('#verdict', { hasText: 'with problems' }).waitFor()
    await page.getByRole('link', { name: 'Errors' }).click()
    await page.locator('#errors', { hasText: 'upstream_' }).waitFor()
    await shot(page, 'status-upstream-down')
    expect(complaints).toEqual([])
    await page.route('**/status', (route) => route.abort())
    await page.locator('#verdict', { hasText: 'cannot be reached' }).waitFor()
    complaints.length = 0
    await page.context().close()
  })

  test('drains when confirmed', async () => {
    const page = await open('tools')
    await page.getByRole('button', { name: /Drain/ }).click()
    await page.getByRole('button', { name: 'Yes' }).click()
    await page.getByText('Draining.').waitFor()
    await expect.poll(() => get(`${mount}/posts`).catch(() => 'refused')).toBe('refused')
    await page.context().close()
  })
})
