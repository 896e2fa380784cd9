if vim.g.loaded_pillion then
  return
end
vim.g.loaded_pillion = true

vim.api.nvim_create_user_command('Pillion', function(command)
  require('pillion').command(command.fargs)
end, {
  nargs = '*',
  desc = 'MCP servers: list, start, stop, restart, call, log, quit',
  complete = function(lead, line)
    return require('pillion').complete(lead, line)
  end,
})
