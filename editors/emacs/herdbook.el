;;; herdbook.el --- Review comments in Emacs, by eglot  -*- lexical-binding: t; -*-

;; Author: the Herdbook authors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Say (load "/people/me/herdbook.el") in your init file, open a file of a
;; git repository and type M-x herdbook.  Comments are flymake's; M-x
;; herdbook-resolve and M-x herdbook-reply are for the one at the cursor's
;; line, and M-x eglot-code-actions has both.  Eglot talks to one server in a
;; buffer: M-x eglot-shutdown and M-x eglot bring the other one back.

;;; Code:

(require 'eglot)
(require 'seq)

(defgroup herdbook nil "Review comments, by eglot." :group 'tools)

(defcustom herdbook-command '("herdbook" "rpc")
  "How the server is started; a full path where it is not on the PATH."
  :type '(repeat string))

;; At the end of the list: only for modes that have no server of their own.
(add-to-list 'eglot-server-programs
             `((prog-mode text-mode conf-mode) . ,(lambda (&rest _) herdbook-command)) t)

;;;###autoload
(defun herdbook ()
  "Let Herdbook look after this buffer's project, whichever server its mode has."
  (interactive)
  (when (eglot-current-server) (eglot-shutdown (eglot-current-server)))
  (let ((eglot-server-programs `((,major-mode . ,herdbook-command))))
    (call-interactively #'eglot)))

(defun herdbook-request (method params)
  "Call any METHOD of Herdbook with PARAMS, a property list; what it answers."
  (jsonrpc-request (or (eglot-current-server) (user-error "Type M-x herdbook first"))
                   method params))

(defun herdbook-execute (command &rest params)
  "Give a COMMAND such as \"claim\" with PARAMS, a property list; what it answers."
  (herdbook-request :workspace/executeCommand
                    (list :command (concat "herdbook." command)
                          :arguments (if params (vector params) []))))

(defun herdbook-comment ()
  "The id of the comment at this line."
  (let* ((actions (eglot-code-actions (line-beginning-position) (line-end-position)))
         (found (seq-find (lambda (command) (equal (plist-get command :command) "herdbook.reply"))
                          (mapcar (lambda (action) (plist-get action :command)) actions))))
    (if found (seq-elt (plist-get found :arguments) 0)
      (user-error "There is no open comment at this line"))))

(defun herdbook-reply (text)
  "Reply TEXT to the comment at this line."
  (interactive "sReply: ")
  (herdbook-execute "reply" :comment_id (herdbook-comment) :body text :author "you"))

(defun herdbook-resolve ()
  "Resolve the comment at this line."
  (interactive)
  (herdbook-execute "resolve" :comment_id (herdbook-comment)))

(defun herdbook-claim (agent)
  "Claim the most urgent task for AGENT."
  (interactive "sAgent: ")
  (herdbook-execute "claim" :agent agent))

(defun herdbook-complete (agent task summary)
  "Complete a TASK that AGENT holds, with a SUMMARY."
  (interactive "sAgent: \nsTask: \nsWhat came of it: ")
  (herdbook-execute "complete" :agent agent :task task :summary summary))

(defun herdbook-grade (agent commit grade)
  "Grade a COMMIT of AGENT with a GRADE."
  (interactive
   (list (read-string "Agent: ") (read-string "Commit: " "HEAD")
         (completing-read "Grade: " '("bad" "neutral" "good" "excellent") nil t)))
  (herdbook-execute "grade" :agent agent :commit commit :user grade))

(defun herdbook-dismiss (proposal)
  "Dismiss a PROPOSAL."
  (interactive "sProposal: ")
  (herdbook-execute "dismiss" :proposal_id proposal))

(provide 'herdbook)
;;; herdbook.el ends here
