import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { basic } from './site-under-test.ts'
import { copyCompanion } from './wordpress/copy-companion.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const token = 'token-of-the-companion-and-the-gateway'

/** Installs the companion in a WordPress that is running: PHP may use an earlier file for two seconds (opcache.revalidate_freq). */
const installCompanion = async (wordpress: WordPress, gateways: string): Promise<void> => {
  const folder = join(wordpress.site, 'wp-content/mu-plugins')
  await mkdir(folder, { recursive: true })
  // A read that starts scheduled tasks by a separate request is not described completely.
  const constants = { TRELLIS_TOKEN: token, TRELLIS_GATEWAYS: gateways, DISABLE_WP_CRON: '1' }
  const lines = Object.entries(constants).map(([name, value]) => `define('${name}', '${value}');`)
  const shown = `header('Reports-To: ${gateways || 'none'}');`
  await writeFile(join(folder, '0-trellis-settings.php'), `<?php ${lines.join(' ')} ${shown}`)
  await copyCompanion(wordpress.site)
  const used = async (): Promise<string | null> => {
    const response = await fetch(`${wordpress.restRoot}/`)
    await response.arrayBuffer()
    return response.headers.get('reports-to')
  }
  await vi.waitFor(async () => expect(await used()).toBe(gateways || 'none'), {
    timeout: 20_000,
    interval: 200,
  })
}

/** The administrator's browser: it keeps cookies, and follows no redirect. */
const createBrowser = (origin: string) => {
  const cookies = new Map<string, string>()
  const send = async (path: string, headers?: Readonly<Record<string, string>>): Promise<Response> => {
    const response = await fetch(origin + path, {
      method: headers === undefined ? 'GET' : 'POST',
      headers: { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(headers === undefined ? {} : { body: new URLSearchParams(headers) }),
      redirect: 'manual',
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return response
  }
  return {
    login: async (): Promise<void> => {
      await send('/wp-login.php')
      await send('/wp-login.php', { log: 'admin', pwd: 'admin-password', testcookie: '1' })
    },
    /** "Quick Edit" in the list of posts. */
    quickEdit: async (id: number, headers: Readonly<Record<string, string>>): Promise<number> => {
      const html = await (await send('/wp-admin/edit.php')).text()
      const response = await send('/wp-admin/admin-ajax.php', {
        action: 'inline-save',
        post_type: 'post',
        post_ID: String(id),
        _inline_edit: /name="_inline_edit" value="([^"]*)"/.exec(html)?.[1] ?? '',
        edit_date: 'false',
        post_view: 'list',
        screen: 'edit-post',
        _status: 'publish',
        ...headers,
      })
      await response.text()
      return response.status
    },
    /** The form "Add Category". */
    addCategory: async (name: string): Promise<number> => {
      const page = '/wp-admin/edit-tags.php?taxonomy=category'
      const html = await (await send(page)).text()
      const nonce = /name="_wpnonce_add-tag" value="([^"]*)"/.exec(html)?.[1] ?? ''
      const response = await send('/wp-admin/edit-tags.php', {
        action: 'add-tag',
        screen: 'edit-category',
        taxonomy: 'category',
        post_type: 'post',
        '_wpnonce_add-tag': nonce,
        'tag-name': name,
      })
      await response.text()
      return response.status
    },
  }
}

const suite = (): void => {
  let wordpress: WordPress
  let gateway: TestGateway
  let browser: ReturnType<typeof createBrowser>

  beforeAll(async () => {
    wordpress = await startWordPress()
    gateway = await startTestGateway({
      services: {
        blog: siteService(wordpress.origin, {
          names: 'same',
          mount: '/index.php/wp-json',
          cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
          changes: { token, poll: '1s' },
        }),
      },
    })
    await installCompanion(wordpress, gateway.adminAddress)
    browser = createBrowser(wordpress.origin)
    await browser.login()
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const read = async (path: string) => {
    const response = await fetch(`${gateway.publicAddress}/index.php/wp-json/wp/v2/${path}`)
    return { response, body: (await response.json()) as never, status: response.headers.get('cache-status') }
  }
  const titleOf = async (id: number): Promise<string> =>
    ((await read(`posts/${id}`)).body as { title: { rendered: string } }).title.rendered
  const firstPost = async (): Promise<number> => {
    const [post] = (await read('posts?per_page=1')).body as readonly { id: number }[]
    return post?.id ?? 0
  }
  const pushes = (): Promise<number> => gateway.metric('trellis_changes_applied_total', 'source="push"')

  /** Reads until the response comes from the cache. */
  const stored = (path: string) => expect.poll(async () => (await read(path)).status).toContain('hit')

  test('the feed of the site is heard', async () => {
    await expect.poll(() => gateway.metric('trellis_changes_state', 'state="heard"')).toBe(1)
  })

  test('a post that is edited in wp-admin is read in its new state at once', async () => {
    const id = await firstPost()
    await stored(`posts/${id}`)
    await stored('posts?search=renamed')
    const before = await pushes()
    expect(await browser.quickEdit(id, { post_title: 'Renamed in wp-admin' })).toBe(200)
    expect(await titleOf(id)).toBe('Renamed in wp-admin')
    expect((await read('posts?search=renamed')).body).toMatchObject([{ id }])
    expect(await pushes()).toBeGreaterThan(before)
  })

  test('a category that is added with a form of wp-admin is read at once', async () => {
    await stored('categories?per_page=100')
    expect(await browser.addCategory('Ferns')).toBe(302)
    const { body } = await read('categories?per_page=100')
    expect((body as readonly { name: string }[]).map(({ name }) => name)).toContain('Ferns')
  })

  test('no response has the fields that the companion sends to the gateway', async () => {
    const direct = await fetch(`${wordpress.restRoot}/wp/v2/posts`)
    await direct.text()
    expect(direct.headers.get('trellis-tags')).toMatch(/^v1;/)
    for (const path of ['posts', 'posts', 'posts?_embed', 'posts?context=edit', 'nothing']) {
      const { response } = await read(path)
      expect([...response.headers.keys()].filter((name) => name.startsWith('trellis-'))).toEqual([])
    }
    const options = await fetch(`${gateway.publicAddress}/index.php/wp-json/wp/v2/posts`, {
      method: 'OPTIONS',
    })
    await options.text()
    expect(options.headers.get('trellis-tags')).toBeNull()
  })

  test('a write through the gateway, whose own change is pushed while it is in flight, is answered', async () => {
    const id = await firstPost()
    const response = await fetch(`${gateway.publicAddress}/index.php/wp-json/wp/v2/posts/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: basic(wordpress.credentials.admin) },
      body: JSON.stringify({ title: 'Through the gateway' }),
    })
    expect(response.status).toBe(200)
    expect(await titleOf(id)).toBe('Through the gateway')
  })

  test('an autosave of a draft leaves the lists of what is published in the cache', async () => {
    const headers = { 'Content-Type': 'application/json', Authorization: basic(wordpress.credentials.admin) }
    const draft = await fetch(`${wordpress.restRoot}/wp/v2/posts`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ title: 'A draft', status: 'draft' }),
    })
    const { id } = (await draft.json()) as { id: number }
    await stored('posts')
    const saved = await fetch(`${wordpress.restRoot}/wp/v2/posts/${id}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ content: 'More of the draft' }),
    })
    // WordPress sends the push before the end of its response.
    await saved.text()
    const changed = await fetch(`${wordpress.restRoot}/wp/v2/posts/${id}?context=edit`, { headers })
    expect(await changed.json()).toMatchObject({ content: { raw: 'More of the draft' } })
    expect((await read('posts')).status).toContain('hit')
  })

  test('a change whose push is lost is seen with the next poll', async () => {
    const id = await firstPost()
    await stored(`posts/${id}`)
    const before = await pushes()
    await installCompanion(wordpress, '')
    await browser.quickEdit(id, { post_title: 'Only in the log' })
    await expect.poll(() => titleOf(id)).toBe('Only in the log')
    expect(await pushes()).toBe(before)
  })
}

describeWith('php', 'reads of a WordPress with the companion', suite)
