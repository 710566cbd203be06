import { describe, expect, test } from 'vitest'
import { tasksBehindInterface, tasksBehindPages } from '../../../../src/wordpress/tags/scheduled-tasks.ts'

describe('a request for the script does nothing else', () => {
  test.each([
    ['GET', '/wp-cron.php', ''],
    ['HEAD', '/blog/wp-cron.php', 'a=1'],
    ['POST', '/wp-cron.php', ''],
    ['POST', '/blog/wp-cron.php', 'doing_wp_cron=1.5'],
  ])('%s %s?%s', (method, path, query) => {
    expect(tasksBehindPages.areAlone(method, path, query)).toBe(true)
  })

  test.each([
    ['POST', '/wp-cron.php', 'acme=1'],
    ['POST', '/wp-admin/admin-ajax.php/wp-cron.php', ''],
    ['POST', '/a;b/wp-cron.php', ''],
    ['POST', '/wp-cron.php/acme', ''],
    ['POST', '/wp-json/acme/v1/wp-cron.php', ''],
    ['DELETE', '/x/wp-cron.php/', ''],
  ])('not %s %s?%s', (method, path, query) => {
    expect(tasksBehindPages.areAlone(method, path, query)).toBe(false)
  })

  test('at the interface it is a part of a route', () => {
    expect(tasksBehindInterface.areAlone('POST', '/acme/wp-cron.php', '')).toBe(false)
  })
})

describe('tasks run behind a redirect', () => {
  const runs = (query: string, location: string, status = 302): boolean =>
    tasksBehindPages.runBehind(query, { status, headers: ['Location', location] })

  test.each([
    ['', '/?doing_wp_cron=1.5'],
    ['a=1', 'https://a.test/b?a=1&doing_wp_cron=1.5'],
    ['x=doing_wp_cron', '/?x=doing_wp_cron&doing_wp_cron=1.5#top'],
  ])('%s to %s', (query, location) => {
    expect(runs(query, location)).toBe(true)
  })

  test.each([
    ['doing_wp_cron=1', '/?doing_wp_cron=1', 302],
    ['doing.wp.cron', '/?doing_wp_cron=1', 302],
    ['', '/doing_wp_cron', 302],
    ['', '/?to=doing_wp_cron', 302],
    ['', '/#?doing_wp_cron=1', 302],
    ['', '/?doing_wp_cron=1', 301],
    ['', '/?doing_wp_cron=1', 200],
  ])('not %s to %s with %i', (query, location, status) => {
    expect(runs(query, location, status)).toBe(false)
  })
})
