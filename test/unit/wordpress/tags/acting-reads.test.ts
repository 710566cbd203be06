import { describe, expect, test } from 'vitest'
import { actsAtPages, uncacheableReasonOf } from '../../../../src/wordpress/tags/uncacheable.ts'

const isWrite = (target: string): boolean => {
  const [path = '', query = ''] = target.split('?')
  const uncacheableReason = uncacheableReasonOf(path, query)
  return uncacheableReason !== undefined && actsAtPages(uncacheableReason)
}

describe('a GET of the pages of a WordPress', () => {
  test.each([
    ['publishes what is in a mailbox', '/wp-mail.php'],
    ['the same in another spelling', '/blog/WP-Mail%2ephp/x'],
    ['activates a user', '/wp-activate.php?key=abc'],
    ['the same by its cookie', '/wp-activate.php'],
    ['upgrades the database', '/wp-admin/upgrade.php?step=upgrade_db'],
    ['upgrades a network', '/wp-admin/network/upgrade.php?action=upgrade&n=5'],
    ['installs', '/wp-admin/install.php?step=2'],
    ['repairs tables', '/wp-admin/maint/repair.php?repair=2'],
    ['runs an action of a plugin', '/wp-admin/admin-post.php?action=acme'],
    ['the same by Ajax', '/wp-admin/admin-ajax.php?action=acme'],
    ['keeps what an embed shows', '/wp-admin/admin-ajax.php?action=oembed-cache&post=1'],
    ['confirms a mail address of the site', '/wp-admin/options.php?adminhash=abc'],
    ['confirms a mail address of a user', '/wp-admin/profile.php?newuseremail=abc'],
    ['deletes a site of a network', '/wp-admin/ms-delete-site.php?h=abc'],
    ['confirms a request for personal data', '/wp-login.php?action=confirmaction&request_id=1&confirm_key=a'],
    ['has a nonce', '/wp-admin/post.php?post=1&action=trash&_wpnonce=abc'],
    ['has a nonce of another name', '/wp-admin/edit-comments.php?_wpnonce_bulk=abc'],
    ['has a nonce of Ajax', '/?_ajax_nonce=abc'],
    ['has the nonce of a screen', '/wp-admin/async.php?nonce=abc'],
    ['has a nonce that PHP reads under its name', '/wp-admin/a.php?_wpnonce%00=abc&_wp%6eonce=abc'],
    ['runs the scheduled tasks', '/wp-cron.php'],
  ])('counts as a write where it %s: %s', (_what, target) => {
    expect(isWrite(target)).toBe(true)
  })

  test.each([
    ['an ordinary page while tasks run', '/about?doing_wp_cron=1.5'],
    ['the front page with it', '/?doing_wp_cron'],
    ['a preview', '/?p=1&preview=true&preview_nonce=abc'],
    ['a page whose form has a nonce of its own', '/contact?nonce=abc'],
    ['the screen of a post', '/wp-admin/post.php?post=1&action=edit'],
    ['a list of posts', '/wp-admin/edit.php?post_type=page'],
    ['a search of Ajax', '/wp-admin/admin-ajax.php?action=ajax-tag-search&q=a'],
    ['Ajax without an action', '/wp-admin/admin-ajax.php'],
    ['the offer to upgrade', '/wp-admin/upgrade.php'],
    ['the login', '/wp-login.php?redirect_to=%2F'],
    ['a page whose name begins like a script', '/wp-mail.phpx'],
  ])('counts as a read where it is %s: %s', (_what, target) => {
    expect(isWrite(target)).toBe(false)
  })
})
